"""The shapes that a real forward pass has, which a diagram shows in place of letters."""

import torch


@torch.no_grad()
def shapes_of(module, *inputs, **options):
    """The shapes that a real call has.

    Args:
        module: any module.
        inputs, options: what it is called with.

    Returns:
        dict from the name of each part, as ``named_modules`` has it ("" the module itself), to the shape of its output,
        of its first tensor where it gives several; and from "input 0", "input 1", ... to those of the arguments.
    """
    shapes = {f"input {i}": tuple(x.shape) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}

    def note(name):
        def hook(part, given, output):
            first = output[0] if isinstance(output, tuple) else output
            if isinstance(first, torch.Tensor):
                shapes[name] = tuple(first.shape)

        return hook

    hooks = [part.register_forward_hook(note(name)) for name, part in module.named_modules()]
    try:
        module(*inputs, **options)
    finally:
        for hook in hooks:
            hook.remove()
    return shapes
