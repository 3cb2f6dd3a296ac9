import torch
import torch_npu

x = torch.arange(32.0).view(1, 1, 2, 4, 4).npu()
out, indices = torch.ops.aten.max_pool3d_with_indices(x, 2)
call = torch.ones(1, 1, 1, 2, 2).npu(), x, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False, indices
print(torch.ops.aten.max_pool3d_with_indices_backward(*call).cpu().sum().item())  # got 4.0
try:
    torch.ops.aten.max_pool3d_with_indices_backward.grad_input(*call, grad_input=x.clone())
    torch_npu.npu.synchronize()
except RuntimeError as error:
    print("error code is 161001" in str(error))
# got True
