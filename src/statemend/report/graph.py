"""The picture of one family: one row per session, parents above children, one column per line of descent."""

from __future__ import annotations

import msgspec

from statemend.report.model import Family, FamilyNode

_ROW = 74
_COLUMN = 26
_LEFT = 16
_TOP = 22
#: More rows than this make no picture; the JSON has the rest.
MOST_ROWS = 40


class Row(msgspec.Struct, frozen=True):
    """One session, or ``folded`` sessions of a plain stretch that are drawn as one."""

    node: FamilyNode
    x: int
    y: int
    relation: str
    parent: str | None
    exported: bool
    resumed: bool
    resume_opens: bool
    export_ends: bool
    folded: int = 0


class Link(msgspec.Struct, frozen=True):
    """A line from parent to child, as the ``d`` of a path."""

    path: str
    relation: str
    exported: bool
    resumed: bool


class Drawing(msgspec.Struct, frozen=True):
    """The whole picture in pixels. ``text_x`` is where the labels start; ``left_out`` counts undrawn
    sessions."""

    rows: tuple[Row, ...]
    links: tuple[Link, ...]
    height: int
    text_x: int
    left_out: int


def drawing(family: Family) -> Drawing:
    """Lay out ``family``. A plain stretch of one-child sessions that nobody picks is folded into one row,
    and a session that several links or a cycle reach is drawn once."""
    return _Layout(family).drawing()


class _Layout:
    def __init__(self, family: Family) -> None:
        self.family = family
        self.nodes = {node.id: node for node in family.nodes}
        self.children: dict[str, list[str]] = {}
        self.relation: dict[str, str] = {}
        self.parent: dict[str, str] = {}
        for edge in family.edges:
            self.children.setdefault(edge.parent, []).append(edge.child)
            self.relation[edge.child] = edge.relation
            self.parent[edge.child] = edge.parent
        self.export = family.export or ()
        self.resume_path = self._path_to(family.resume)

    def _path_to(self, node: str | None) -> frozenset[str]:
        path: set[str] = set()
        while node is not None and node not in path:
            path.add(node)
            if node == self.family.start:
                break
            node = self.parent.get(node)
        return frozenset(path)

    def _order(self) -> list[tuple[str, int]]:
        """Every session with its column, depth first, the exported child before the others."""
        ordered: list[tuple[str, int]] = []
        seen: set[str] = set()
        column = 0
        starts = [node.id for node in self.family.nodes if node.id not in self.parent]
        for start in [*starts, *self.nodes]:
            stack = [(start, column)]
            while stack:
                node, lane = stack.pop()
                if node in seen or node not in self.nodes:
                    continue
                seen.add(node)
                ordered.append((node, lane))
                ranked = sorted(self.children.get(node, ()), key=lambda child: child not in self.export)
                following: list[tuple[str, int]] = []
                for child in ranked:
                    following.append((child, column if following else lane))
                    column += 1
                stack.extend(reversed(following))
        return ordered

    def _plain(self, node: str) -> bool:
        """Whether the session only carries a line on: nothing is lost when it is folded away."""
        children = self.children.get(node, ())
        return (
            len(children) == 1
            and node in self.parent
            and len(self.children[self.parent[node]]) == 1
            and node not in (self.family.start, self.family.resume, *self.export[-1:])
        )

    def drawing(self) -> Drawing:
        rows: list[Row] = []
        places: dict[str, Row] = {}
        run: list[tuple[str, int]] = []
        ordered = self._order()
        foldable = len(ordered) > 8

        def fold() -> None:
            if run:
                row = self._row(*run[-1], len(rows), folded=len(run))
                rows.append(row)
                places.update((node, row) for node, _ in run)
                run.clear()

        for node, lane in ordered:
            if run and self.parent.get(node) != run[-1][0]:
                fold()
            if foldable and self._plain(node):
                run.append((node, lane))
                continue
            fold()
            places[node] = self._row(node, lane, len(rows))
            rows.append(places[node])
        fold()
        drawn = rows[:MOST_ROWS]
        shown = {id(row) for row in drawn}
        links = []
        for edge in self.family.edges:
            above, below = places.get(edge.parent), places.get(edge.child)
            if above is None or below is None or above is below:
                continue
            if id(above) in shown and id(below) in shown:
                links.append(self._link(edge.parent, edge.child, above, below))
        widest = max((row.x for row in drawn), default=_LEFT)
        return Drawing(
            rows=tuple(drawn),
            links=tuple(sorted(links, key=lambda link: (link.exported, link.resumed))),
            height=len(drawn) * _ROW,
            text_x=widest + 24,
            left_out=sum(row.folded or 1 for row in rows[MOST_ROWS:]),
        )

    def _row(self, node: str, lane: int, index: int, folded: int = 0) -> Row:
        return Row(
            node=self.nodes[node],
            x=_LEFT + min(lane, 5) * _COLUMN,
            y=_TOP + index * _ROW,
            relation=self.relation.get(node, ""),
            parent=self.parent.get(node),
            exported=node in self.export,
            resumed=node in self.resume_path,
            resume_opens=node == self.family.resume,
            export_ends=bool(self.export) and node == self.export[-1],
            folded=folded,
        )

    def _link(self, parent: str, child: str, above: Row, below: Row) -> Link:
        if above.x == below.x:
            path = f"M{above.x} {above.y}V{below.y}"
        else:
            bend = above.y + _ROW * 3 // 4
            path = (
                f"M{above.x} {above.y}C{above.x} {bend - 14} {below.x} {bend - 36} {below.x} {bend}V{below.y}"
            )
        return Link(
            path=path,
            relation=self.relation.get(child, ""),
            exported=parent in self.export and child in self.export,
            resumed=parent in self.resume_path and child in self.resume_path,
        )
