"use strict";
(() => {
  const data = name => JSON.parse(document.getElementById("data-" + name).textContent);
  const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** The specification with every name of a style sheet variable replaced by its colour of this moment. */
  const coloured = value =>
    Array.isArray(value) ? value.map(coloured)
      : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, coloured(inner)]))
      : typeof value === "string" && value.startsWith("--") ? variable(value)
      : value;

  const config = () => coloured({
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { labelColor: "--faint", gridColor: "--line", domainColor: "--line", tickColor: "--line", labelFontSize: 11 },
    legend: { labelColor: "--ink", labelFontSize: 12, symbolStrokeWidth: 2 },
    range: { category: ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"] },
  });

  const draw = async figure => {
    const spec = coloured(JSON.parse(figure.querySelector("script").textContent));
    const target = figure.querySelector(".chart");
    const values = data(spec.data.name);
    spec.data = { values };
    spec.width = "container";
    spec.autosize = { type: "fit", contains: "padding" };
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    await vegaEmbed(target, spec, { actions: false, renderer: "svg", config: config(), tooltip: { theme: dark ? "dark" : "light" } });
    figure.dataset.drawn = "true";
  };

  const drawAll = () => document.querySelectorAll("figure[data-chart]").forEach(figure => draw(figure).catch(console.error));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();
})();
