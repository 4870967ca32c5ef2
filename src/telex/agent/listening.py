"""Who hears of which run: a feed for each connection and run, from listening to leaving.

A run that waits since before a restart goes on when somebody comes who can answer; who cannot may
watch it meanwhile, and hears it go on. Used by the runtime and by `run.attach`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.agent.feeds import Feed, Notice

if TYPE_CHECKING:
    from telex.agent.connection import Connection
    from telex.agent.questions import Questions
    from telex.agent.runs import Run
    from telex.agent.store import Store
    from telex.protocols.agent_ui.running import RunStatusNotify


class Listening:
    def __init__(self, runs: dict[str, Run], questions: Questions, store: Store) -> None:
        self._runs = runs
        """Those that go on."""
        self._questions = questions
        self._store = store
        self._watching: set[Feed] = set()

    def to(self, run: Run, connection: Connection, after: int | None = None) -> Feed:
        """From now on this connection hears of the run; with `after`, of what was before too."""
        known = run.run_id in connection.feeds
        feed = self.feed(run.run_id, connection, after)
        run.feeds.add(feed)
        if not known:  # one that attaches anew was here
            (run.away.left if connection.gone else run.away.came)(connection.can)
        return feed

    def feed(self, run_id: str, connection: Connection, after: int | None) -> Feed:
        """In place of the one that the connection had."""
        if (earlier := connection.feeds.pop(run_id, None)) is not None:
            self._sent(run_id, connection, earlier)
            earlier.close()
        feed = connection.feeds[run_id] = Feed(run_id, connection, self._store, after=after)
        feed.task.add_done_callback(lambda _: self._sent(run_id, connection, feed))
        return feed

    def _sent(self, run_id: str, connection: Connection, feed: Feed) -> None:
        if (run := self._runs.get(run_id)) is not None:
            run.feeds.discard(feed)
        self._watching.discard(feed)
        if connection.feeds.get(run_id) is feed:
            del connection.feeds[run_id]

    def watch(self, feed: Feed) -> None:
        self._watching.add(feed)

    def watchers(self, run_id: str) -> set[Feed]:
        """Who watches a run that goes on, or ends, now; they watch no longer."""
        found = {feed for feed in self._watching if feed.run_id == run_id}
        self._watching -= found
        return found

    def over(self, told: RunStatusNotify) -> None:
        """A run that was watched ended without going on."""
        for feed in self.watchers(told.run_id):
            feed.notice(Notice("run.status", told))
            feed.finish()

    def left(self, connection: Connection) -> None:
        """It hears no more."""
        self.deafened(connection)
        for run_id, feed in connection.feeds.items():
            if (run := self._runs.get(run_id)) is not None:
                run.feeds.discard(feed)
        connection.close()

    def deafened(self, connection: Connection) -> None:
        """It answers no more. What it was asked waits for it, if it may come back."""
        if connection.gone:
            return
        connection.gone = True
        for run_id, feed in connection.feeds.items():
            if (run := self._runs.get(run_id)) is not None:
                run.away.left(connection.can)
            else:
                feed.finish()
        self._questions.left(connection)
