"""A cluster of cells, and what its tenants were promised of it: what an allocator of requests is made from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from gpusched_env.errors import InputError
from gpusched_env.model.tenant import check_levels, feasible


@dataclass(frozen=True, slots=True)
class Chain:
    """A kind of pieces of the cluster: the same hardware, divided in the same way.

    Args:
        name: Its name.
        gpu_type: Name of the GPU type.
        sizes: GPUs of its cells by level, rising from 1 to those of a piece, each a multiple of the one below.
        node: GPUs of a node, one of the sizes; larger cells are racks.

    Raises:
        InputError: The sizes do not nest or do not begin with 1, or a node is none of them.
    """

    name: str
    gpu_type: str
    sizes: tuple[int, ...]
    node: int

    def __post_init__(self) -> None:
        if check_levels(self.sizes)[0] != 1:
            raise InputError(f"{self.name}.sizes", list(self.sizes), "sizes that begin with one GPU")
        if self.node not in self.sizes:
            raise InputError(f"{self.name}.node", self.node, f"one of {', '.join(map(str, self.sizes))}")


@dataclass(frozen=True, slots=True)
class Piece:
    """A whole piece of the cluster: a node, or a rack of nodes.

    Args:
        chain: Name of its chain.
        gpus: The node and the number there of each of its GPUs, in the order of its cells.
        pinned: First GPU and size of the cells in it that are pinned, by their names.
    """

    chain: str
    gpus: tuple[tuple[str, int], ...]
    pinned: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class VirtualCluster:
    """What a tenant was promised.

    Args:
        promised: Chain and GPUs of each of its cells, in the order in which they are looked at.
        pinned: Names of the pinned cells that are its own.
    """

    promised: tuple[tuple[str, int], ...]
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CellCluster:
    """A cluster of cells and its virtual clusters.

    Args:
        chains: Its chains; those of one GPU type are tried in this order.
        pieces: Its whole pieces.
        tenants: The virtual clusters, by tenant.

    Raises:
        InputError: A chain or a pinned cell is not there, or the cells do not all fit into the cluster at one time.
    """

    chains: tuple[Chain, ...]
    pieces: tuple[Piece, ...]
    tenants: Mapping[str, VirtualCluster]

    def __post_init__(self) -> None:
        wanted: dict[str, Counter[int]] = defaultdict(Counter)
        pinned = {name: (piece.chain, size) for piece in self.pieces for name, (_, size) in piece.pinned.items()}
        known = {piece.chain for piece in self.pieces}
        for tenant, cluster in self.tenants.items():
            for name in cluster.pinned:
                if name not in pinned:
                    raise InputError(f"{tenant}.pinned", name, f"one of {', '.join(pinned)}")
            for chain, size in (*cluster.promised, *(pinned[name] for name in cluster.pinned)):
                if chain not in known:
                    raise InputError(f"{tenant}.promised", chain, f"one of {', '.join(sorted(known))}")
                wanted[chain][size] += 1
        for chain, counts in wanted.items():
            tops = Counter(len(piece.gpus) for piece in self.pieces if piece.chain == chain)
            if not feasible(counts, tops, self.chain(chain).sizes):
                raise InputError("promised", dict(sorted(counts.items())), f"cells that fit into {chain}: {dict(tops)}")

    def chain(self, name: str) -> Chain:
        """Return the chain of a name."""
        return next(chain for chain in self.chains if chain.name == name)
