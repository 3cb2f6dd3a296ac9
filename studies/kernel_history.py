"""Faults of the library's kernels that its vendor fixed: are they found before the fix, and not after it?

    python studies/kernel_history.py --sources OPS_NN.git [--only 366a307b3] [--slow]

``--sources`` is a git directory of hicann/ops-nn. One case of each fix is replayed on the sources before and after it.
They are the commit and its parent. If the parent does not build on the model ("reverted"), they are `BASE` with and
without the commit's lines.

It also prints what found the fault first:

- the smoke plan in float32 and int32
- a target of the plan (``suites/cases/targets.py``), which takes about ten minutes and needs ``--slow``
- the watch, which needs no wrong value
- the watch with an assumption switched in the manifest, which also finds other places

Exits with 1 if a fault is not found before its fix, or if anything is found after it without such a switch. Needs
`git`, `tar` and `patch`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from poolproof import backends

MANIFESTS = Path(backends.__file__).parent / "ascendc" / "ops_nn"
BASE = "e5c3fa9327ea95ba26d06227e746923580d10921"


class Fix(NamedTuple):
    commit: str
    kernel: str
    sources: str
    """``parent`` or ``reverted``."""
    found_by: str
    what: str
    case: str


FIXES = """
20d7389d1 adaptive_max_pool3d-950 parent plan: rows are padded with 0, not -inf
{"operator":"AdaptiveMaxPool3d","shape":[1,1,3,40,71],"index_dtype":"int32","output_size":[1,1,2],"values":"negative"}
892b46bb4 adaptive_max_pool2d-950 parent target: outputs times inputs of a row, above 2^31, overflow
{"operator":"AdaptiveMaxPool2d","shape":[1,1,1,70000],"index_dtype":"int32","output_size":[1,65600]}
2f541bc3e adaptive_max_pool3d-a2 parent plan: a NaN with its sign bit is none, a negative subnormal is one
{"operator":"AdaptiveMaxPool3d","shape":[1,2,5,30,31],"index_dtype":"int32","output_size":[1,1,2],"values":"nan"}
366a307b3 max_pool_grad_with_argmax_v3-950 reverted watch: no flags between vector instructions and a scalar loop
{"operator":"MaxPool2dWithIndicesBackward","shape":[1,2,64,64],"dtype":"float16","index_dtype":"int32",\
"kernel_size":[64,64],"stride":[64,64],"indices":"in_window"}
094a917ab max_pool_grad_with_argmax_v3-950 reverted watch: threads read UB before scalar stores are there
{"operator":"MaxPool2dWithIndicesBackward","shape":[1,1,9,9],"index_dtype":"int32",\
"kernel_size":[3,3],"stride":[2,2],"padding":[1,1]}
0f9312a55 max_pool3d_with_argmax_v2-a2 parent assumption: no barrier before results are transposed
{"operator":"MaxPool3dWithArgmax","shape":[1,16,4,8,8],"index_dtype":"int32","kernel_size":[2,2,2],"stride":[2,2,2]}
d85270bba max_pool_with_argmax_v3-950 reverted plan: cores that share a window read its address from memory
{"operator":"MaxPool2dWithIndices","shape":[1,2,40,33],"index_dtype":"int32","kernel_size":[32,33],"stride":[32,33]}
5acdcc5ae adaptive_max_pool3d-950 parent watch: CTRL[48] is not set back, so that later kernels compute otherwise
{"operator":"AdaptiveMaxPool3d","shape":[1,1,3,40,71],"dtype":"float16","index_dtype":"int32","output_size":[1,1,2]}
""".strip().splitlines()

UNSEEN = """
3003d61b3 products above 2^32 that some versions of the device's compiler cut, and g++ does not
a024eadfa, 7c6e80045 32 bits that only planes of more than 2^31 cells need: no machine here has the memory
0f82e61e5, 63a8908e0 a struct registered for another tiling key, which only the vendor's memory checker reads
692f43a93 a tiling that refused every product: the kernel of that day does not build on the model
90c819d55, c8ca6becf, 77cace391, defaa3f97 op_api and infershape, no kernel
"""

MANIFEST_CHANGES = {
    "": ('"int32", "int64"', '"int32"'),  # half of the time, and kernels before June 2026 need functions for int64
    "2f541bc3e": (', pool_3d_common = "pooling/pool_3d_common/op_kernel"', ""),  # does not exist yet
    "0f9312a55": ("auto_sync = false", "auto_sync = false\nassume = { vector_pipe_in_order = false }"),
}


@click.command(help=__doc__)
@click.option("--sources", type=click.Path(exists=True, path_type=Path), required=True, help="A git directory.")
@click.option("--only", multiple=True, help="A commit to replay, in place of all.")
@click.option("--slow", is_flag=True, help="Replay what a target finds, too.")
def main(sources: Path, only: tuple[str, ...], slow: bool) -> None:
    wrong = 0
    for about, case in zip(FIXES[::2], FIXES[1::2], strict=True):
        head, _, what = about.partition(": ")
        fix = Fix(*head.split(), what, case)
        if fix.commit not in only if only else fix.found_by == "target" and not slow:
            continue
        with TemporaryDirectory() as folder:  # one for both: files that a fix leaves unchanged are compiled once
            before, after = (replay(sources, Path(folder, "sources"), fix, is_fixed) for is_fixed in (False, True))
        is_clean = after.startswith("conforms") or fix.found_by == "assumption"
        wrong += before.startswith("conforms") or not is_clean
        print(f"{fix.commit} {fix.kernel}: {what}", f"  found by: {fix.found_by}", sep="\n")
        print(f"  before: {before}", f"  after: {after}", sep="\n", flush=True)
    print("Not replayed:", UNSEEN)
    sys.exit(wrong > 0)


def replay(sources: Path, folder: Path, fix: Fix, is_fixed: bool) -> str:
    """Return the verdict of a fix's case, and the checks that it violates."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    check_out(sources, folder, fix, is_fixed)
    manifest = (MANIFESTS / f"{fix.kernel}.toml").read_text(encoding="utf-8")
    for commit, change in MANIFEST_CHANGES.items():
        manifest = manifest.replace(*change) if fix.commit.startswith(commit) else manifest
    (folder / "kernel.toml").write_text(manifest, encoding="utf-8")
    command = ["poolproof", "replay", "--backend", "ascendc:kernel.toml", "--sources", str(folder), fix.case]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(r"^(conforms|(?:violates|crashed|timed out)[\w:, ]*)", done.stdout, re.MULTILINE)
    return match[1] if match else f"no verdict: {(done.stdout + done.stderr).strip()[-300:]}"


def check_out(sources: Path, folder: Path, fix: Fix, is_fixed: bool) -> None:
    """Put the sources with or without a fix into a folder."""
    git = ["git", "--git-dir", str(sources)]
    revision = BASE if fix.sources == "reverted" else fix.commit if is_fixed else f"{fix.commit}^"
    archive = subprocess.run([*git, "archive", revision, "pooling", "common"], capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive, check=True)
    if fix.sources == "reverted" and not is_fixed:
        kernel = f":(glob)pooling/{fix.kernel.rpartition('-')[0]}/op_kernel/**"
        command = [*git, "diff", "-U0", f"{fix.commit}^", fix.commit, "--", kernel]
        lines = subprocess.run(command, capture_output=True, check=True).stdout
        subprocess.run(["patch", "-R", "-l", "-p1", "-d", str(folder)], input=lines, capture_output=True, check=True)


if __name__ == "__main__":
    main()
