"""The models of nn/ as PyTorch modules, for comparison.

  model("resnet:20", norm="batch", shape=(3, 32, 32), classes=10, context=128)

Names of parameters are the ones in hearsay's model files. The golden values, tests/e2e/pytorch.sh and the benchmarks
all use this file, so that each model has only one definition in PyTorch. Written for PyTorch 1.13.
"""
import math
import re

import torch
import torch.nn.functional as F
from torch import nn

BYTES = 256


class Dense(nn.Module):
    """The models logreg and mlp: layers fc1, fc2, ... with ReLU between them."""

    def __init__(self, sizes):
        super().__init__()
        self.depth = len(sizes) - 1
        for i in range(self.depth):
            setattr(self, f"fc{i + 1}", nn.Linear(sizes[i], sizes[i + 1]))

    def forward(self, x):
        x = x.flatten(1)
        for i in range(1, self.depth):
            x = F.relu(getattr(self, f"fc{i}")(x))
        return getattr(self, f"fc{self.depth}")(x)


def norm_of(kind, channels, groups=None):
    """Returns a norm layer. `groups`: number of groups of group norm (default: 8 channels per group)."""
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm((groups or channels // 8) if kind == "group" else 1, channels)


class LeNet5(nn.Module):
    """LeNet-5 (LeCun et al. 1998), with ReLU and max-pooling. With `norm`, a norm layer follows each pooling layer."""

    def __init__(self, channels, size, classes, norm=None):
        super().__init__()
        self.bn1 = norm_of(norm, 6, 2) if norm else nn.Identity()
        self.bn2 = norm_of(norm, 16, 4) if norm else nn.Identity()
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * ((size // 2 - 4) // 2) ** 2, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = self.bn1(F.max_pool2d(F.relu(self.conv1(x)), 2))
        x = self.bn2(F.max_pool2d(F.relu(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


class VGG11(nn.Module):
    """VGG-11 (Simonyan, Zisserman 2015, configuration A), with the layer numbers of torchvision."""

    def __init__(self, classes, norm=None):
        super().__init__()
        layers, channels = [], 3
        for width in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
            if width == "M":
                layers.append(nn.MaxPool2d(2))
                continue
            layers.append(nn.Conv2d(channels, width, 3, padding=1))
            if norm:
                layers.append(norm_of(norm, width))
            layers.append(nn.ReLU(inplace=True))
            channels = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(512, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Block(nn.Module):
    def __init__(self, before, planes, stride, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(before, planes, 3, stride, 1, bias=False)
        self.bn1 = norm_of(norm, planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = norm_of(norm, planes)
        self.grows = before != planes

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.grows:  # A shortcut without parameters (option A of the ResNet paper).
            quarter = out.shape[1] // 4
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, quarter, quarter))
        return F.relu(out + x)


class ResNet(nn.Module):
    """ResNet for CIFAR-10 (He et al. 2016, section 4.2) with 6k + 2 layers."""

    def __init__(self, depth, classes, norm):
        super().__init__()
        k = (depth - 2) // 6
        assert depth == 6 * k + 2
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = norm_of(norm, 16)
        before = 16
        for i, planes in enumerate((16, 32, 64), 1):
            blocks = []
            for j in range(k):
                blocks.append(Block(before, planes, 2 if i > 1 and j == 0 else 1, norm))
                before = planes
            setattr(self, f"layer{i}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class LSTM(nn.Module):
    """An LSTM on bytes, as in PyTorch's word_language_model."""

    def __init__(self, depth, width):
        super().__init__()
        self.encoder = nn.Embedding(BYTES, width)
        self.rnn = nn.LSTM(width, width, depth, batch_first=True)
        self.decoder = nn.Linear(width, BYTES)

    def forward(self, ids):
        return self.decoder(self.rnn(self.encoder(ids))[0])


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (
            part.view(n, t, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        score = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        out = score.masked_fill(future, -math.inf).softmax(3) @ v
        return self.c_proj(out.transpose(1, 2).reshape(n, t, width))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GPTBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, width // 32)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """GPT (Radford et al. 2019) on bytes, with the names of minGPT and nanoGPT."""

    def __init__(self, depth, width, context):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(BYTES, width),
                wpe=nn.Embedding(context, width),
                h=nn.ModuleList(GPTBlock(width) for _ in range(depth)),
                ln_f=nn.LayerNorm(width),
            )
        )
        self.lm_head = nn.Linear(width, BYTES, bias=False)

    def forward(self, ids):
        t = self.transformer
        x = t.wte(ids) + t.wpe(torch.arange(ids.shape[1]))
        for block in t.h:
            x = block(x)
        return self.lm_head(t.ln_f(x))


def model(spec, norm="batch", shape=(1, 28, 28), classes=10, context=128):
    """Returns the module for a model spec of hearsay. `shape`: channels, height, width."""
    kind, _, rest = spec.partition(":")
    numbers = [int(n) for n in re.findall(r"\d+", rest)]
    if kind == "logreg":
        return Dense([math.prod(shape), classes])
    if kind == "mlp":
        return Dense(numbers)
    if kind == "lenet5":
        return LeNet5(shape[0], shape[1], classes, norm if rest == "bn" else None)
    if kind == "vgg11":
        return VGG11(classes, norm if rest == "bn" else None)
    if kind == "resnet":
        return ResNet(numbers[0], classes, norm)
    if kind == "lstm":
        return LSTM(*([1] + numbers)[-2:])
    if kind == "gpt":
        return GPT(*numbers, context)
    raise ValueError(f"no model {spec}")


def init(spec, module):
    """Draws initial values as hearsay does. The values are the defaults of the modules, with three exceptions: He et
    al.'s normal distribution for the convolutions of resnet and vgg11, N(0, 0.02) for gpt, and a smaller deviation for
    those projections of gpt whose outputs are added to the residual stream."""
    for name, m in module.named_modules():
        if spec.startswith(("resnet", "vgg11")) and isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_in", nonlinearity="relu")
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif spec.startswith("gpt") and isinstance(m, (nn.Linear, nn.Embedding)):
            back = math.sqrt(2 * len(module.transformer.h)) if name.endswith("c_proj") else 1
            nn.init.normal_(m.weight, std=0.02 / back)
            if getattr(m, "bias", None) is not None:
                nn.init.zeros_(m.bias)
    return module


def is_text(spec):
    return spec.startswith(("lstm", "gpt"))


def groups(module, weight_decay):
    """Returns parameter groups for an optimiser. Biases and normalisation layers have no weight decay."""
    decays, spared = [], []
    for p in module.parameters():
        (decays if p.dim() > 1 else spared).append(p)
    return [dict(params=decays, weight_decay=weight_decay), dict(params=spared, weight_decay=0.0)]


def mean_loss(logits, labels):
    """Returns the mean loss over all rows. For a text model, a row is a byte of a sample."""
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
