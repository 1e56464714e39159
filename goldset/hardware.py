"""What an encoder runs on: device, dtype, and the library that multiplies its matrices."""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import Any

from goldset.errors import ConfigError

CPU, GPU = "cpu", "cuda"  # torch calls AMD's devices cuda too


def resolved_device(device: str) -> str:
    """``auto`` -> cuda where there is a GPU that torch can use, else cpu; anything else stays.

    Raises:
        ConfigError: cuda is asked for and there is no GPU.
    """
    if device == GPU and not gpu_name():
        raise ConfigError('device = "cuda": torch finds no GPU here; write "auto" or "cpu", or install torch for yours')
    return device if device != "auto" else (GPU if gpu_name() else CPU)


def resolved_dtype(dtype: str, device: str) -> str:
    """``auto`` -> bfloat16 where the device computes in it, else float32; anything else stays."""
    if dtype != "auto":
        return dtype
    return "bfloat16" if (has_bfloat16() if device == CPU else gpu_has_bfloat16()) else "float32"


def has_bfloat16() -> bool:
    """Whether the CPU multiplies in bfloat16; elsewhere it is emulated and slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


@functools.cache
def gpu_name() -> str | None:
    """Name of the GPU that torch would use, if any. Torch is loaded only where the system has a GPU's driver."""
    if platform.system() == "Linux" and not any(Path(node).exists() for node in ("/dev/nvidiactl", "/dev/kfd")):
        return None
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


def gpu_has_bfloat16() -> bool:
    """Whether the GPU multiplies in bfloat16."""
    import torch

    return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def multiplies_with(device: str, dtype: str) -> str:
    """Who multiplies the matrices of linear layers: ``onednn`` for float32 on x86, else torch's own choice.

    Torch takes MKL there, which needs twice to three times the CPU time of oneDNN on AMD's processors.
    """
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return "onednn" if device == CPU and dtype == "float32" and x86 else "torch"


def through_onednn(model: Any) -> None:
    """Let oneDNN multiply in every float32 linear layer of a torch module, each weight laid out for it once.

    A build of torch that lacks the two operators is left as it is: builds differ in their version, and so in the key
    of the cache.
    """
    import torch

    lay_out = getattr(torch.ops.mkldnn, "_reorder_linear_weight", None)
    multiply = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if lay_out is None or multiply is None:
        return

    def linear(weight: Any, bias: Any, given: Any) -> Any:
        return multiply(given, weight, bias, "none", [], "")

    with torch.inference_mode():
        for layer in model.modules():
            if type(layer) is torch.nn.Linear and layer.weight.dtype is torch.float32:
                laid_out = lay_out(layer.weight.detach(), None)
                setattr(layer, "forward", functools.partial(linear, laid_out, layer.bias))  # noqa: B010  # a method
