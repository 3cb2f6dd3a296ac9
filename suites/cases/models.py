"""Pooling layers of well-known networks at training sizes, as data: what a user of these operators runs all day.

A layer is named with the source of its sizes: the paper, or the file of an implementation that many train with. The
batch is what one card gets, not the whole of a cluster's. Data is as it stands behind that layer: after a ReLU, behind
a batch normalisation, or saturated, with the gradients that come back to a layer far from the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from zlib import crc32

from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Windowed, Windows
from poolproof.reports.rows.factors import Scope
from poolproof.suites.cases.targets import ACCEPTANCE, Target, target

DTYPES = ("float32", "float16", "bfloat16")
"""Dtypes in which networks are trained."""

SMALL = 10**6
"""Elements of ``self`` below which a layer is part of every plan."""


@dataclass(frozen=True)
class Layer:
    """One pooling layer: ``shape`` is that of ``self``, (N, C, *spatial), ``values`` the recipe of what it pools."""

    network: str
    name: str
    source: str
    shape: tuple[int, ...]
    windows: Windows
    values: str = "after_relu"

    def is_run_by(self, operator: Operator) -> bool:
        return len(self.shape) - 2 == operator.spatial_rank and isinstance(self.windows, operator.windows)


_ROWS, _WIDTHS = 16, range(33, 65)
"""Of reduced planes; widths have every remainder of the elements that a vector may hold."""


def models(scope: Scope, dtype: str, index_dtype: str) -> list[Target]:
    """List the layers that run by an operator, in one pair of dtypes, then their windows on reduced planes."""
    found = []
    gradient = "backpropagated" if scope.operator.is_backward else "integers"
    for layer in LAYERS if dtype in DTYPES else ():
        if layer.is_run_by(scope.operator):
            name = f"{layer.network}, {layer.name}"
            data = {"shape": layer.shape, "values": layer.values, "gradient": gradient}
            plan_cases = 0 if prod(layer.shape) < SMALL else ACCEPTANCE
            windows = layer.windows.passed()
            found.append(target(scope, dtype, index_dtype, name, 1, plan_cases, attributes=windows, **data))
    return found + (_reduced(scope, dtype, index_dtype, gradient) if found else [])


def _reduced(scope: Scope, dtype: str, index_dtype: str, gradient: str) -> list[Target]:
    """List the windows of layers on small planes; the smoke plan asks a width of each remainder by eight."""
    operator, found = scope.operator, []
    own = (layer.windows for layer in LAYERS if layer.is_run_by(operator))
    for number, windows in enumerate(dict.fromkeys(each for each in own if max(each.sizes) <= _ROWS)):
        turn = number + crc32(f"{operator.name} {dtype} {index_dtype}".encode())
        for width in _WIDTHS:
            plan_cases = 0 if (width // 8 - width - turn) % 4 == 0 else ACCEPTANCE
            shape = (1, 2, *(_ROWS,) * (operator.spatial_rank - 1), width)
            fields = {"shape": shape, "attributes": windows.passed(), "gradient": gradient, "values": "after_relu"}
            name = f"{windows or 'windows'} on rows of {width}"
            found.append(target(scope, dtype, index_dtype, name, 1, plan_cases, **fields))
    return found


_TORCHVISION = "torchvision/models"
_TUTORIAL = "pytorch.org, tutorial Training a Classifier"
_CBAM = "arXiv 1807.06521; Jongchan/attention-module, MODELS/cbam.py"
_SPP_YOLO = "pjreddie/darknet, cfg/yolov3-spp.cfg"
_SPP_NET = "arXiv 1406.4729, section 3.1: 256 maps of 13x13, pyramid of 6, 3, 2 and 1"
_FAST = "arXiv 1504.08083: 7x7 of each region of conv5 of VGG-16"
_VGG = f"{_TORCHVISION}/vgg.py, configuration D"
_NORMALISED = "batch_normalised"
_PYRAMID = "torchvision/ops/feature_pyramid_network.py, LastLevelMaxPool"
_POINTNET = "arXiv 1612.00593; charlesq34/pointnet, models/pointnet_cls.py"
_SENTENCES = "arXiv 1408.5882; yoonkim/CNN_sentence, filters of 3 words"
_C3D = "arXiv 1412.0767; DavideA/c3d-pytorch, C3D_model.py"
_DGCNN = "arXiv 1801.07829; WangYueFt/dgcnn, model.py"
_CBAM_RESNET = "luuuyi/CBAM.PyTorch, model/resnet_cbam.py"
_AVA = "open-mmlab/mmaction2, BBoxHeadAVA with spatial_pool_type max"
_S3D = f"{_TORCHVISION}/video/s3d.py"
_EVERY_OTHER = Windowed((1,), (2,))
_HALVED = Windowed((2,), (2,))
_SAME = Windowed((3,), (1,), (1,))
_SAME_CEIL = Windowed((3,), (1,), (1,), ceil_mode=True)
_STEM = Windowed((3,), (2,), (1,))
_FLAT_STEM = Windowed((1, 3, 3), (1, 2, 2), (0, 1, 1))
_VALID = Windowed((3,), (2,))
_CEIL = Windowed((3,), (2,), ceil_mode=True)

LAYERS = (
    Layer("ResNet-50", "stem", f"{_TORCHVISION}/resnet.py, maxpool", (32, 64, 112, 112), _STEM),
    Layer("ResNet-50", "pool1 of Caffe", "KaimingHe/deep-residual-networks, pool1", (8, 64, 112, 112), _CEIL),
    Layer("VGG-16", "pool1", _VGG, (8, 64, 224, 224), _HALVED),
    Layer("VGG-16", "pool2", _VGG, (8, 128, 112, 112), _HALVED),
    Layer("VGG-16", "pool3", _VGG, (8, 256, 56, 56), _HALVED),
    Layer("VGG-16", "pool4", _VGG, (8, 512, 28, 28), _HALVED),
    Layer("VGG-16", "pool5", _VGG, (16, 512, 14, 14), _HALVED),
    Layer("GoogLeNet", "maxpool1", f"{_TORCHVISION}/googlenet.py, maxpool1", (8, 64, 112, 112), _CEIL),
    Layer("GoogLeNet", "inception3a", f"{_TORCHVISION}/googlenet.py, branch4", (8, 192, 28, 28), _SAME_CEIL),
    Layer("GoogLeNet", "inception5a", f"{_TORCHVISION}/googlenet.py, branch4", (8, 832, 7, 7), _SAME_CEIL),
    Layer("SqueezeNet 1.0", "second pool", f"{_TORCHVISION}/squeezenet.py", (8, 256, 54, 54), _CEIL, "saturated"),
    Layer("Inception v3", "Mixed_6a", f"{_TORCHVISION}/inception.py, InceptionB", (8, 288, 35, 35), _VALID),
    Layer("DenseNet-121", "pool0", f"{_TORCHVISION}/densenet.py, pool0", (8, 64, 112, 112), _STEM),
    Layer("AlexNet", "last pool", f"{_TORCHVISION}/alexnet.py", (128, 256, 13, 13), _VALID),
    Layer("U-Net", "first level", "arXiv 1505.04597, figure 1", (1, 64, 568, 568), _HALVED),
    Layer("U-Net", "fourth level", "arXiv 1505.04597, figure 1", (1, 512, 64, 64), _HALVED),
    Layer("YOLOv3-SPP", "5x5", _SPP_YOLO, (16, 512, 13, 13), Windowed((5,), (1,), (2,)), _NORMALISED),
    Layer("YOLOv3-SPP", "9x9", _SPP_YOLO, (16, 512, 13, 13), Windowed((9,), (1,), (4,)), _NORMALISED),
    Layer("YOLOv3-SPP", "13x13", _SPP_YOLO, (4, 512, 13, 13), Windowed((13,), (1,), (6,)), _NORMALISED),
    Layer("Faster R-CNN", "last level of the pyramid, 800x1344", _PYRAMID, (1, 256, 25, 42), _EVERY_OTHER, _NORMALISED),
    Layer("CBAM", "channel attention, 56x56", _CBAM, (4, 256, 56, 56), Windowed((56,), (56,)), _NORMALISED),
    Layer("CBAM", "channel attention, 7x7", _CBAM, (4, 2048, 7, 7), Windowed((7,), (7,)), "saturated"),
    Layer("PointNet", "1024 points", _POINTNET, (8, 1024, 1024, 1), Windowed((1024, 1), (1024, 1))),
    Layer("sentence CNN", "over time", _SENTENCES, (50, 100, 62, 1), Windowed((62, 1), (62, 1))),
    Layer("CIFAR-10 tutorial", "first pool", _TUTORIAL, (4, 6, 28, 28), _HALVED),
    Layer("CIFAR-10 tutorial", "second pool", _TUTORIAL, (4, 16, 10, 10), _HALVED),
    Layer("C3D", "pool1", "arXiv 1412.0767, section 3.2", (2, 64, 16, 112, 112), Windowed((1, 2, 2), (1, 2, 2))),
    Layer("C3D", "pool5", _C3D, (8, 512, 2, 7, 7), Windowed((2, 2, 2), (2, 2, 2), (0, 1, 1))),
    Layer("3-D ResNet-18", "stem", "kenshohara/3D-ResNets-PyTorch, models/resnet.py", (4, 64, 16, 56, 56), _STEM),
    Layer("3-D U-Net", "second level", "arXiv 1606.06650, figure 2", (1, 128, 60, 60, 52), _HALVED),
    Layer("S3D", "first pool", f"{_S3D}, 64 frames of 224x224", (1, 64, 32, 112, 112), _FLAT_STEM),
    Layer("S3D", "branch of the last block", f"{_S3D}, SepInceptionBlock3D", (1, 832, 8, 7, 7), _SAME),
    Layer("SPP-net", "6x6, training batch", _SPP_NET, (128, 256, 13, 13), Adaptive((6, 6))),
    Layer("SPP-net", "6x6", _SPP_NET, (4, 256, 13, 13), Adaptive((6, 6))),
    Layer("SPP-net", "3x3", _SPP_NET, (4, 256, 13, 13), Adaptive((3, 3))),
    Layer("SPP-net", "2x2", _SPP_NET, (4, 256, 13, 13), Adaptive((2, 2)), "saturated"),
    Layer("SPP-net", "1x1", _SPP_NET, (4, 256, 13, 13), Adaptive((1, 1))),
    Layer("Fast R-CNN", "region of 23x14", _FAST, (1, 512, 23, 14), Adaptive((7, 7))),
    Layer("Fast R-CNN", "region of 5x3, smaller than its pool", _FAST, (1, 512, 5, 3), Adaptive((7, 7))),
    Layer("DGCNN", "over 1024 points", _DGCNN, (8, 1024, 1, 1024), Adaptive((1, 1)), _NORMALISED),
    Layer("ResNet-50 with CBAM", "attention behind the stem", _CBAM_RESNET, (4, 64, 112, 112), Adaptive((1, 1))),
    Layer("R-C3D", "segment of 96 frames", "arXiv 1703.07814, section 3.3", (1, 512, 12, 7, 7), Adaptive((1, 4, 4))),
    Layer("R-C3D", "segment of 768 frames", "arXiv 1703.07814, section 3.3", (1, 512, 96, 7, 7), Adaptive((1, 4, 4))),
    Layer("SlowOnly on AVA", "head of 4 regions", _AVA, (4, 2048, 1, 8, 8), Adaptive((1, 1, 1))),
    Layer("SlowOnly on AVA", "head of 16 regions", _AVA, (16, 2048, 1, 8, 8), Adaptive((1, 1, 1)), "saturated"),
)
"""Shapes follow from the input that the source trains on: images of 224x224 where nothing else is said."""
