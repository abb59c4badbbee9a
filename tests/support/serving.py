"""Services in a thread of this process, for tests of connections."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from gpusched_operations.service.access import ApiKeys
from gpusched_operations.service.decision import PolicyCatalogue
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.pool import Reply
from gpusched_operations.service.server import _Server, create_app


@contextmanager
def serving(
    answer: Callable[[bytes], Reply],
    limits: RequestLimits,
    bound: socket.socket | None = None,
    keys: ApiKeys | None = None,
    made: list[_Server] | None = None,
) -> Iterator[str]:
    """Serve in the body; give host and port.

    Args:
        answer: Gives the reply to a request.
        limits: Sizes and times.
        bound: The socket to listen at; by default a free port.
        keys: Those who may ask.
        made: Gets the server.
    """
    made = [] if made is None else made
    app = create_app(answer, PolicyCatalogue.of("edf"), limits, keys=keys, crowded=lambda: made[0].crowded())  # noqa: PLW0108
    listening, ready = bound or socket.create_server(("127.0.0.1", 0)), threading.Event()
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    made.append(_Server(config, limits, ready.set))
    thread = threading.Thread(target=made[0].run, args=([listening],), daemon=True)
    thread.start()
    assert ready.wait(300.0)
    name = listening.getsockname()
    yield name if isinstance(name, str) else f"{name[0]}:{name[1]}"
    made[0].should_exit = True
    thread.join(300.0)
    listening.close()
    assert not thread.is_alive()
