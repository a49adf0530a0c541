"""msmq-bridge kafka: the embedded single-node Kafka on its own."""

import signal
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from bridge.adapters.kafka.embedded import EmbeddedKafka, running_broker, stop_broker
from bridge.adapters.kafka.folder import BrokerState
from bridge.cli.output import Output, OutputOption, show

app = typer.Typer(help="Run the embedded single-node Kafka on its own.", no_args_is_help=True)


def register(whole: typer.Typer) -> None:
    whole.add_typer(app, name="kafka")


DEFAULT_DATA = Path("data/kafka")
DataOption = Annotated[Path, typer.Option("--data", help="The broker's data folder.")]
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 is any free one.")
]
ForegroundOption = Annotated[
    bool, typer.Option("--foreground", help="Stay, and stop the broker on Ctrl-C or SIGTERM.")
]


@app.command()
def start(
    data: DataOption = DEFAULT_DATA,
    port: PortOption = 9092,
    foreground: ForegroundOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start a broker and print its bootstrap.servers; it keeps running in the background.

    Example: msmq-bridge kafka start --data ./data/kafka --port 0 -o json
    """
    broker = EmbeddedKafka(data, port, detached=not foreground)
    if not foreground:
        broker.start()
        show(_described(data, broker.state), output)
        return
    for number in (signal.SIGTERM, signal.SIGINT):  # a background job begins with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    with broker:
        show(_described(data, broker.state), output)
        with suppress(KeyboardInterrupt):
            broker.wait_dead()
        broker.raise_if_failed()


@app.command()
def stop(data: DataOption = DEFAULT_DATA, output: OutputOption = Output.TABLE) -> None:
    """Stop the broker of a data folder; the data stays.

    Example: msmq-bridge kafka stop --data ./data/kafka
    """
    stopped = stop_broker(data)
    show({**_described(data, None), "stopped": stopped is not None}, output)


@app.command()
def status(data: DataOption = DEFAULT_DATA, output: OutputOption = Output.TABLE) -> None:
    """Tell whether a broker runs on a data folder; exit code 0 if it does, 1 if not.

    Example: msmq-bridge kafka status -o json
    """
    state = running_broker(data)
    show(_described(data, state), output)
    if state is None:
        raise typer.Exit(1)


def _described(data: Path, state: BrokerState | None) -> dict[str, object]:
    described: dict[str, object] = {"running": state is not None, "data": str(data.absolute())}
    if state is not None:
        described |= {
            "bootstrap.servers": state.bootstrap_servers,
            "pid": state.pid,
            "cluster_id": state.cluster_id,
        }
    return described
