"""Compares what learn computed (arrays in a folder) with PyTorch, step by step. Exit 77: no PyTorch."""
import sys

try:
    import torch
except ImportError:
    print("skipped: Debian's python3-torch is not installed")
    sys.exit(77)
import numpy

torch.set_num_threads(1)
folder = sys.argv[1]
compared = 0


def load(name):
    return torch.from_numpy(numpy.load(f"{folder}/{name}.npy"))


def same(name, theirs, tolerance=2e-5):
    """Ours, by name, is theirs."""
    global compared
    ours = load(name)
    assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
    off = (ours - theirs.detach()).abs()
    limit = tolerance * (1 + theirs.detach().abs())
    assert bool((off <= limit).all()), f"{name}: off by {off.max().item():g}"
    compared += ours.numel()


def lstm(case):
    """Sequences are padded, a row each; theirs are packed by length."""
    x, length, w, first = (load(f"{case}_{k}") for k in ("x", "len", "w", "first"))
    length = length.to(torch.int64)
    n_in, hidden = x.shape[2], first.shape[2]
    net = torch.nn.LSTM(n_in, hidden, batch_first=True)
    wx, wh, b = torch.split(w, [n_in * 4 * hidden, hidden * 4 * hidden, 4 * hidden])
    with torch.no_grad():
        net.weight_ih_l0.copy_(wx.view(n_in, 4 * hidden).T)
        net.weight_hh_l0.copy_(wh.view(hidden, 4 * hidden).T)
        net.bias_ih_l0.copy_(b)
        net.bias_hh_l0.zero_()
    x.requires_grad_()
    first.requires_grad_()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, length, batch_first=True, enforce_sorted=False)
    packed, (h, c) = net(packed, (first[0].unsqueeze(0), first[1].unsqueeze(0)))
    out, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
    same(f"{case}_h", out)
    same(f"{case}_last", torch.cat([h, c]))
    ((out * load(f"{case}_pull")).sum() + (torch.cat([h, c]) * load(f"{case}_dlast")).sum()).backward()
    same(f"{case}_gw", torch.cat([net.weight_ih_l0.grad.T.flatten(), net.weight_hh_l0.grad.T.flatten(),
                                  net.bias_ih_l0.grad]))
    same(f"{case}_dx", x.grad)
    same(f"{case}_dfirst", first.grad)


def attend(case):
    x, y, w, length, hide, pull = (load(f"{case}_{k}") for k in ("x", "y", "w", "len", "hide", "pull"))
    width, heads = x.shape[2], int(load(f"{case}_heads")[0])
    net = torch.nn.MultiheadAttention(width, heads, batch_first=True)
    layers = w.view(4, width + 1, width)
    with torch.no_grad():
        net.in_proj_weight.copy_(torch.cat([layers[i, :width].T for i in range(3)]))
        net.in_proj_bias.copy_(torch.cat([layers[i, width] for i in range(3)]))
        net.out_proj.weight.copy_(layers[3, :width].T)
        net.out_proj.bias.copy_(layers[3, width])
    x.requires_grad_()
    y.requires_grad_()
    absent = torch.arange(y.shape[1])[None, :] >= length[:, None]
    out, share = net(x, y, y, key_padding_mask=absent, attn_mask=hide > 0, average_attn_weights=False)
    same(f"{case}_out", out)
    same(f"{case}_share", share)
    (out * pull).sum().backward()
    grads = [torch.cat([net.in_proj_weight.grad[i * width:(i + 1) * width].T,
                        net.in_proj_bias.grad[i * width:(i + 1) * width].unsqueeze(0)]) for i in range(3)]
    grads.append(torch.cat([net.out_proj.weight.grad.T, net.out_proj.bias.grad.unsqueeze(0)]))
    same(f"{case}_gw", torch.stack(grads).flatten())
    same(f"{case}_dx", x.grad)
    same(f"{case}_dy", y.grad)


def norm(case):
    x, w, pull = (load(f"{case}_{k}") for k in ("x", "w", "pull"))
    net = torch.nn.LayerNorm(x.shape[1])
    with torch.no_grad():
        net.weight.copy_(w[:x.shape[1]])
        net.bias.copy_(w[x.shape[1]:])
    x.requires_grad_()
    out = net(x)
    same(f"{case}_y", out)
    (out * pull).sum().backward()
    same(f"{case}_gw", torch.cat([net.weight.grad, net.bias.grad]))
    same(f"{case}_dx", x.grad)


def adam(case, decay):
    gradients, steps = load(f"{case}_g"), load(f"{case}_w")
    w = load(f"{case}_start").clone().requires_grad_()
    kind = torch.optim.AdamW if decay else torch.optim.Adam
    optimiser = kind([w], lr=0.01, betas=(0.9, 0.99), eps=1e-6, weight_decay=decay)
    reached = []
    for g in gradients:
        w.grad = g.clone()
        optimiser.step()
        reached.append(w.detach().clone())
    assert len(reached) == len(steps)
    same(f"{case}_w", torch.stack(reached), 3e-6)


lstm("lstm_a")
lstm("lstm_b")
attend("attend")
norm("norm")
adam("adam", 0)
adam("adamw", 0.1)
print(f"{compared} numbers agree with PyTorch {torch.__version__}")
