"""How Sphinx makes a site of the pages that lie in this repository, README first: `tox -e docs`."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from generated import GENERATED  # noqa: E402
from poolproof.reports.rows.store import run_schema  # noqa: E402
from poolproof.suites.cases.case import case_schema  # noqa: E402

SECTIONS = {  # in their order; Sphinx warns of a page that is missing
    "Tutorial": [f"docs/tutorial/first-{step}" for step in ("run", "failure", "backend", "kernel", "acceptance")],
    "How to": [
        "docs/how-to/npu",
        "docs/how-to/torch-npu",
        "docs/how-to/kernels",
        "docs/how-to/ci",
        "docs/how-to/reports",
        "docs/how-to/precision",
        "docs/how-to/waivers",
        "docs/how-to/budgets",
        "docs/how-to/several-machines",
        "docs/how-to/dashboards",
        "docs/how-to/acceptance",
        "docs/how-to/case-lists",
        "docs/how-to/hypothesis",
        "docs/how-to/write-a-backend",
        "docs/how-to/hosts",
        "examples/README",
    ],
    "Reference": ["docs/reference/index"],
    "Explanation": [
        "docs/explanation/criterion",
        "docs/explanation/accumulation",
        "docs/explanation/standards",
        "docs/explanation/coverage",
        "docs/explanation/causes",
        "docs/explanation/isolation",
        "docs/explanation/evidence",
        "docs/explanation/forgeries",
        "docs/explanation/score",
        "docs/explanation/speed",
    ],
    "Project": ["FINDINGS", "CONTRIBUTING", "CHANGELOG", "简体中文 <README.zh>"],
}

project = "poolproof"
author = "The poolproof authors"
copyright = author  # noqa: A001  # Sphinx' name
version = release = version_of("poolproof")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
napoleon_use_ivar = True  # attributes of a dataclass are documented once
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "examples/README.md"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
highlight_language = "none"  # what is no Python says nothing of itself
default_role = "any"
suppress_warnings = ["ref.any"]  # names in docstrings that are not on a page stay as they are

smartquotes = False  # "--" begins an option

html_theme = "furo"
html_title = f"poolproof {version}"
html_copy_source = False


def add_contents(_: Sphinx, page: str, source: list[str]) -> None:
    """Add the table of contents, which no page holds, to the root page."""
    if page == root_doc:
        for caption, pages in SECTIONS.items():
            source[0] += "\n".join(["\n```{toctree}", ":hidden:", f":caption: {caption}", *pages, "```\n"])


class Generated(SphinxDirective):
    """Put a part of `generated.py` into a page, in place of the content: that is for readers of the Markdown file."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(GENERATED[self.arguments[0]](), allow_section_headings=True)


INNER = {"FINDINGS": ["docs/findings/*"], "CONTRIBUTING": ["SECURITY", "CODE_OF_CONDUCT"]}
"""Pages below others, in patterns of Sphinx."""


def add_inner_contents(_: Sphinx, page: str, source: list[str]) -> None:
    if page in INNER:
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", ":glob:", "", *INNER[page], "```\n"])


def unlink_files(app: Sphinx, doctree: nodes.document) -> None:
    """Links to files that are no page lead nowhere outside of a clone: their text stays, of a program also its code.

    One to a file that is not there is broken, and Sphinx warns of it.
    """
    here = (ROOT / app.env.docname).parent
    for node in [*doctree.findall(pending_xref), *doctree.findall(download_reference)]:
        target = str(node["reftarget"]).partition("#")[0]
        found = [base / target for base in (here, ROOT) if target and (base / target).exists()]
        if found and not found[0].with_suffix(".md").exists():  # a page may have a folder of its name
            if node.parent.astext().startswith("Program: "):
                program = found[0].read_text("utf-8")
                node.parent.parent.append(nodes.literal_block(program, program, language="python"))
            node.replace_self(nodes.literal(text=node.astext()))


def add_files(app: Sphinx, failed: Exception | None) -> None:
    """Redirect index.html, which a browser opens first, and write the schemas of cases and runs beside their pages."""
    if failed is None and app.builder.name == "html":
        for name, schema in (("case", case_schema()), ("run", run_schema())):
            path = Path(app.outdir) / "docs" / "reference" / f"{name}.schema.json"
            path.write_text(json.dumps(schema, indent=1) + "\n")
        (Path(app.outdir) / "index.html").write_text(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={root_doc}.html">'
            f'<title>poolproof</title><a href="{root_doc}.html">poolproof</a>\n'
        )


def setup(app: Sphinx) -> None:
    app.add_directive("generated", Generated)
    app.connect("source-read", add_contents)
    app.connect("source-read", add_inner_contents)
    app.connect("doctree-read", unlink_files, priority=100)  # before files to download are collected
    app.connect("build-finished", add_files)
