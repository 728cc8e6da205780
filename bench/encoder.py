"""A training step of the encoder beside the same step in PyTorch: ``python -m bench.encoder``.

One step is 2 x 256 images through ResNet-18 and its head, NT-Xent, gradients, Adam. Both networks
get the same weights, and their projections are compared before anything is timed. Needs
``jgram[bench]``; without PyTorch only jgram's own stages are timed.
"""

from functools import partial
from typing import Any

import jax
import numpy as np

from bench.timing import report, time_call
from jgram.simclr import train as training
from jgram.simclr.augment import augment
from jgram.simclr.encoder import RESNET18

BATCH, THREADS = 256, 2


def torch_network(parameters: Any) -> Any:
    """The same network and weights in PyTorch, channels last in memory as suits its CPU kernels."""
    import torch
    from torch import nn

    def convolution(weights: Any, size: int, stride: int) -> Any:
        kernel = torch.tensor(np.asarray(weights["kernel"][...]).transpose(3, 2, 0, 1))
        out, channels = kernel.shape[:2]
        layer = nn.Conv2d(channels, out, size, stride, size // 2, bias=False)
        layer.weight.data = kernel
        return layer

    class Block(nn.Module):
        def __init__(self, weights: Any, channels: int, stride: int):
            super().__init__()
            out = weights["first"]["kernel"][...].shape[-1]
            self.body = nn.Sequential(
                convolution(weights["first"], 3, stride),
                nn.BatchNorm2d(out),
                nn.ReLU(),
                convolution(weights["second"], 3, 1),
                nn.BatchNorm2d(out),
            )
            self.shortcut = nn.Identity()
            if stride != 1 or channels != out:
                self.shortcut = nn.Sequential(
                    convolution(weights["shortcut"]["layers"][0], 1, stride), nn.BatchNorm2d(out)
                )

        def forward(self, images: Any) -> Any:
            return torch.relu(self.body(images) + self.shortcut(images))

    def linear(weights: Any) -> Any:
        kernel = torch.tensor(np.asarray(weights["kernel"][...]).T)
        layer = nn.Linear(kernel.shape[1], kernel.shape[0])
        layer.weight.data, layer.bias.data = kernel, torch.zeros(kernel.shape[0])
        return layer

    blocks, channels = [], RESNET18.widths[0]
    for index in range(len(RESNET18.widths) * RESNET18.depth):
        stage, first = divmod(index, RESNET18.depth)
        stride = 2 if stage and not first else 1
        blocks.append(Block(parameters["blocks"][index], channels, stride))
        channels = RESNET18.widths[stage]
    network = nn.Sequential(
        convolution(parameters["stem"], 7, 2),
        nn.BatchNorm2d(RESNET18.widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        linear(parameters["hidden"]),
        nn.ReLU(),
        linear(parameters["projection"]),
    )
    return network.to(memory_format=torch.channels_last)


def torch_loss(projections: Any, temperature: float) -> Any:
    """NT-Xent."""
    import torch
    import torch.nn.functional as F

    views = F.normalize(projections, dim=1)
    n = len(views) // 2
    similarities = views @ views.T / temperature
    similarities = similarities.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    return F.cross_entropy(similarities, torch.arange(2 * n).roll(n))


def torch_step(state: training.Training, views: np.ndarray) -> tuple[Any, np.ndarray]:
    """A step, which returns its loss, and the projections of the fresh network."""
    import torch

    torch.set_num_threads(THREADS)
    network = torch_network(state.parameters)
    optimizer = torch.optim.Adam(network.parameters(), lr=training.LEARNING_RATE)
    images = torch.tensor(views).permute(0, 3, 1, 2)  # channels last already

    def step() -> float:
        optimizer.zero_grad()
        loss = torch_loss(network(images), training.TEMPERATURE)
        loss.backward()
        optimizer.step()
        return loss.item()

    network.train()
    with torch.no_grad():
        projections = network(images).numpy()
    return step, projections


def main() -> None:
    """Augmentation and step; PyTorch's step on the same views and weights where it is installed."""
    key = jax.random.key(0)
    state = training.initialize(key, RESNET18)
    images = jax.random.uniform(key, (2 * BATCH, 32, 32, 3))
    view, update = jax.jit(augment), jax.jit(partial(training._update, architecture=RESNET18))
    views = view(key, images)
    rows = [
        time_call("augmentation of 2 x 256 images: jgram", view, key, images),
        time_call("step on 2 x 256 views: jgram", update, state[:3], views),
    ]
    extra = {"images_per_second": BATCH / (rows[0]["seconds"] + rows[1]["seconds"])}
    try:
        step, projections = torch_step(state, np.asarray(views))
    except ModuleNotFoundError:
        print("no PyTorch here: pip install 'jgram[bench]' for the comparison")
    else:

        @jax.jit
        def project(parameters: Any, statistics: Any, views: jax.Array) -> jax.Array:
            return training._encoder(RESNET18, parameters, statistics)(views)[0]

        ours = np.asarray(project(state.parameters, state.statistics, views))
        extra["difference_of_projections"] = float(np.abs(projections - ours).max())
        extra["difference_of_losses"] = abs(step() - float(update(state[:3], views)[1]))
        rows.append(time_call("step on 2 x 256 views: torch", step, against=rows[1]))
    report("encoder", rows, extra)


if __name__ == "__main__":
    main()
