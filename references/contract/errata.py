"""Errata: where the library's published pages and its code disagree about a status, or a page with itself.

Numbers are those of this project's errata: E as found by comparing pages with code, C as found by running the
library's host code on both sides of each clause, F as found in the forward APIs' sources.
"""

ERRATA = {
    "E11": "The two 2-D backward pages refuse padding above the kernel; the code refuses padding above half of it.",
    "E12": "Pages name only some of the pointers whose null is refused; the code checks every one of them.",
    "E13": "The 3-D backward page takes dilation 1 only; the code takes every positive dilation.",
    "E14": "The 3-D backward page does not support empty tensors; the code succeeds and writes nothing.",
    "E16": "On A2 and A3 the 2-D backward page takes INT32 indices; the code lists INT8 too, which tiling refuses.",
    "E17": "The 2-D backward pages refuse indices of another shape; the code compares and drops the result.",
    "E19": "The mask page takes rank 4 only and compares the mask with gradOutput; the code takes ranks 3 and 4.",
    "E20": "A mask kernelSize of a wrong length is an invalid parameter by the page, a null pointer by the code.",
    "E21": "On 950 the mask backward refuses the product before it looks at any pointer.",
    "E26": "The adaptive 2-D forward page allows an outputSize of 0 in its parameter table, not in its error list.",
    "E27": "The adaptive 2-D forward page refuses outputs of a wrong shape as invalid parameters; the code compares"
    " numbers of elements only and answers with an internal error.",
    "E29": "The adaptive 2-D forward checks its format list only on the general path (910, or DOUBLE data).",
    "E30": "The adaptive 2-D backward page limits the plane on every product; the code does not on 950.",
    "E34": "On 950 the 3-D forward checks dilation's length but not that its values are positive.",
    "E35": "The 3-D forward leaves early when out is empty, before it compares out with the pooled shape.",
    "E36": "A plane above 2^31 - 1 in the 3-D forward is an internal error by the code; the page names no status.",
    "E37": "The adaptive 3-D forward compares indicesOut with outputOut along the first axes only, one per value of"
    " outputSize, and leaves the rest to the assembly of its result, which an empty call never reaches.",
    "E38": "The 3-D backward page ties gradOutput to the forward's output; the code leaves that to tiling.",
    "E39": "The 2-D backward APIs take plain tags that their pages leave out; NHWC on A2 and A3 is checked with"
    " channels last and computed with channels first.",
    "E40": "The 3-D backward takes plain tags that its page leaves out; under NDHWC it reads N, C, D, H, W.",
    "C1": "A tag of another rank than the tensor's is an internal error by the code, an invalid parameter by the page.",
    "C2": "At rank 3 the adaptive 2-D backward takes NCL only, though its page lists ND.",
    "C3": "At rank 3 the 2-D backward takes neither NCHW nor (on 950) NHWC, though its page lists them.",
    "C8": "The mask path of 1x1 kernels, and of every kernel on 910, takes NCHW and NHWC only.",
    "C9": "A mask kernelSize of a wrong length together with a null stride, padding or dilation kills the process.",
    "C11": "gradOutput and self that differ in N or C are refused by tiling, in phase one or two by the route taken.",
    "C12": "A view of an input that is not contiguous and leaves its storage is an internal error; no page names it.",
    "F1": "Releases before 2026-06-30 refuse null pointers of the 3-D forward as invalid parameters; later ones as its"
    " page promises.",
    "F2": "The windowed forwards and the adaptive APIs take plain tags that their pages leave out.",
    "F3": "The adaptive 2-D forward has no check of the product; its page does not support Atlas inference devices.",
    "F4": "On blocks the mask forward takes NHWC at no rank, and at rank 3 no tag of another rank.",
    "F5": "On 950 the 2-D forward infers shapes for ND, NCHW and NHWC only.",
    "F6": "The 2-D and the adaptive forwards compare tags of outputs with that of a result; their pages ask for no such"
    " thing.",
    "F7": "On 950, where outputSize does not divide self's lengths, the adaptive 2-D forward pools tensors that are not"
    " tagged NCHW along their second and third axes; its page lists NHWC.",
    "F8": "The adaptive 2-D forward takes no unbatched tensor tagged NHWC, which its page lists; on 950 the process"
    " dies of it.",
    "F9": "On A2 and A3, where outputSize divides self's lengths, a plane above 2^31 - 1 is an internal error of the"
    " adaptive 2-D forward; its page names no limit.",
}
