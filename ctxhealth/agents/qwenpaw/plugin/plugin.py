"""What QwenPaw loads: ``plugin.register(api)``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from .binding import Binding, bind
from .care import Care, log
from .desk import Desk
from .hooks import middleware, phase_hook
from .integration import Integration
from .sdk import client
from .settings import Settings, read_settings

_HERE = Path(__file__).resolve().parent
_CLOSE_S = 1.0


class Plugin:
    """Registered once; starts with QwenPaw's loop and is undone with it or with the plugin."""

    def __init__(self) -> None:
        self.care = Care()
        self.home: Integration | None = None
        self.api: Any = None
        self.settings = Settings()
        self.binding = Binding()

    def register(self, api: Any) -> None:
        self.api = api
        self.settings, troubles = read_settings(getattr(api, "config", None) or {}, _HERE)
        for trouble in troubles:
            log.warning("ctxhealth: %s", trouble)
        self.binding = bind()
        # Before the phase hooks, which QwenPaw registers at 65 and which need a home.
        api.register_startup_hook("ctxhealth_start", self.start, priority=60)
        api.register_shutdown_hook("ctxhealth_stop", self.stop, priority=100)
        api.register_uninstall_hook("ctxhealth_undo", self.undo, priority=100)
        if self.binding.middleware is not None:
            api.register_middleware(self.factory, priority=90)
        self._register_phases(api)

    def _register_phases(self, api: Any) -> None:
        base, phase = self.binding.hook, self.binding.phase
        if base is None or phase is None or self.binding.result is None:
            return
        hooks = (
            ("dispatch", phase.PRE_DISPATCH, 1, self.at_dispatch),
            ("opened", phase.POST_AGENT_BUILD, 900, self.at_build),
            ("idle", phase.PRE_EXECUTE, 1, self.at_execute),
            ("ended", phase.FINALLY, 1, self.at_end),
        )
        for name, when, priority, run in hooks:
            api.register_runtime_hook(phase_hook(base, name, when, priority, run))

    # -- life

    async def start(self) -> None:
        """In QwenPaw's loop, which the plugin's other threads need."""
        try:
            self.home = self._home(asyncio.get_running_loop())
        except Exception as error:
            self.care.failed("start", error)

    def _home(self, loop: asyncio.AbstractEventLoop) -> Integration:
        folder = self._folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = self.settings
        reporter = client.Reporter(
            settings.url, settings.token, agent=settings.agent, runtime="qwenpaw",
            runtime_version=self.binding.version, outbox=folder / "outbox.sqlite3",
            text=settings.text, start=False,
        )  # fmt: skip
        home = Integration(settings, self.binding, reporter, self.care, loop)
        self.care.tell = lambda text: reporter.note(text, "warning")
        if settings.commands:
            Desk(home, self.api._get_all_workspaces, folder / "backups").open()
        home.start()
        reporter.start()
        return home

    def _folder(self) -> Path:
        if self.settings.folder:
            return Path(self.settings.folder).expanduser()
        return (self.binding.folder or _HERE.parent) / "ctxhealth"

    async def stop(self) -> None:
        home, self.home = self.home, None
        if home is None:
            return
        home.stop()
        await asyncio.to_thread(home.reporter.close, _CLOSE_S)

    async def undo(self, **_: Any) -> None:
        """Uninstalled: nothing of ours stays in QwenPaw's classes."""
        await self.stop()

    # -- called by QwenPaw

    def factory(self, ctx: Any, agent_config: Any) -> Any:
        return None if self.home is None else middleware(self.binding.middleware, self.home)

    async def at_dispatch(self, ctx: Any) -> Any:
        home = self.home
        if home is not None:
            self.care.run("dispatch", lambda: home.dispatched(ctx))
        return self.binding.result()

    async def at_build(self, ctx: Any) -> Any:
        home = self.home
        if home is not None:
            self.care.run("turn start", lambda: home.built(ctx))
        return self.binding.result()

    async def at_execute(self, ctx: Any) -> Any:
        home = self.home
        job = None
        if home is not None:
            try:
                job = await home.before(ctx)
            except Exception as error:
                self.care.failed("idle work", error)
        if job is None:
            return self.binding.result()
        said = self.binding.message(
            name="ctxhealth", role="assistant", content=[self.binding.text(text=_said(job))]
        )
        return self.binding.result(self.binding.action.SHORT_CIRCUIT, said)

    async def at_end(self, ctx: Any) -> Any:
        home = self.home
        if home is not None:
            self.care.run("turn end", lambda: home.ended(ctx))
        return self.binding.result()


def _said(job: Any) -> str:
    error = job.result.exception() if job.result.done() else None
    return "An operator's command was carried out." if error is None else f"Not done: {error}"


plugin = Plugin()
