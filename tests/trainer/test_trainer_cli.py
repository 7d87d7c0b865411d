# tables hold whole messages, one a line
import importlib.util

import pytest
import small
import typer
from typer.testing import CliRunner

from hwmodel.cli.train import train as cli_train
from hwmodel.specs.trace import read_trace, write_trace
from hwmodel.trainer.train import train
from hwmodel.views.figures.training import signals_figure, training_figure
from tests.traces import trace as made

app = typer.Typer()
app.command()(cli_train)
run = CliRunner()

needs_digits = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="the extra [data] is not installed"
)


@needs_digits
def test_a_run_from_the_command_line(tmp_path):
    path = tmp_path / "t.json"
    options = ["--epochs", "2", "--seed", "7", "--trace", str(path)]
    result = run.invoke(app, options)
    assert result.exit_code == 0, result.output
    assert "deep-mlp on digits, bold, seed 7: " in result.output
    trace = read_trace(path)
    assert (trace.run.epochs, trace.run.seed, trace.run.frozen) == (2, 7, False)
    again = run.invoke(app, [*options, "--resume"])
    assert again.exit_code == 0 and again.output == result.output
    other = run.invoke(app, [*options, "--resume", "--freeze-boolean"])
    assert other.exit_code == 2 and "belongs to a run with frozen False" in other.output


@needs_digits
def test_a_users_network_and_the_control(tmp_path):
    net = tmp_path / "net.yaml"
    net.write_text(small.BLOCK.replace("[1, 6, 6]", "[1, 8, 8]"))
    path = tmp_path / "t.json"
    options = ["--network", str(net), "--epochs", "1", "--freeze-boolean", "--trace", str(path)]
    result = run.invoke(app, options)
    assert result.exit_code == 0, result.output
    assert "block on digits, bold, seed 0, Boolean weights frozen" in result.output
    assert read_trace(path).epochs[0].layers[1].flip_rate == 0


@needs_digits
def test_one_file_of_each_kind_is_trained_and_priced(hwmodel, tmp_path):
    """The file that `network show --yaml` writes, a method's own, and how long it is trained."""
    (tmp_path / "net.yaml").write_text(hwmodel("network", "show", "deep-mlp", "--yaml")[1])
    (tmp_path / "by.yaml").write_text(hwmodel("method", "show", "bold-bn")[1])
    (tmp_path / "run.yaml").write_text(
        hwmodel("training", "show", "digits-30")[1].replace("epochs: 30", "epochs: 2")
    )
    files = ("--method", "by.yaml", "--training", "run.yaml", "--trace", "t.json")
    code, out, err = hwmodel("train", "--network", "net.yaml", *files)
    assert (code, err) == (0, "")
    assert "deep-mlp on digits, bold-bn, seed 0: " in out
    trace = read_trace(tmp_path / "t.json")
    assert (trace.run.epochs, trace.run.training, trace.run.learning_rate) == (2, "digits-30", 150)
    code, out, _ = hwmodel(
        "report", "net.yaml", "--hardware", "ascend", *files, "--accounting", "paper"
    )
    assert code == 0
    assert "90 iterations" in " ".join(out.split())  # 2 epochs of 1,437 images, 32 at a time
    assert trace.epochs[-1].steps == 90


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataset", "digit"], "no data set is called 'digit': did you mean 'digits'?"),
        (["--network", "conv-smal"], "no network is called 'conv-smal': did you mean 'conv-small'?"),
        (["--method", "blod"], "no method is called 'blod': did you mean 'bold'?"),
        (["--network", "none.yaml"], "none.yaml: cannot be read: No such file or directory"),
        (["--learning-rate", "-1"], "--learning-rate -1: is a number above 0"),
        (["--learning-rate", "nan"], "--learning-rate nan: is a number above 0"),
        (["--signal-error", "1"], "--signal-error 1: is a share from 1e-6 to below 1"),
        (["--dataset", "mnist"], "mnist is read from your files"),
        (["--method", "int8"], "network deep-mlp is not trained by int8: layer fc1 has weights of 8 bit"),
        (["--network", "vgg-small"], "network vgg-small takes images of 3 x 32 x 32 (C, H, W), and no data set of a package has such; name one by --dataset"),
        (["--training", "digits-31"], "no training is called 'digits-31': did you mean 'digits-30'?"),
        (["--training", "cifar10-300"], "training cifar10-300 is of 50,000 images, digits has 1,437 to train on"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_message_and_exit_2(tmp_path, options, message):
    result = run.invoke(app, ["--trace", str(tmp_path / "t.json"), *options])
    assert result.exit_code == 2
    assert message in result.output and "Traceback" not in result.output
    assert result.output.startswith("hwmodel: ") and result.output.count("\n") == 1
    assert not list(tmp_path.iterdir())


@needs_digits
def test_a_network_that_does_not_fit_the_images(tmp_path):
    path = tmp_path / "t.json"
    result = run.invoke(
        app, ["--network", "conv-mnist", "--dataset", "digits", "--trace", str(path)]
    )
    assert result.exit_code == 2 and (
        "network conv-mnist takes images of 1 x 28 x 28 (C, H, W), digits has 1 x 8 x 8"
        in result.output
    )


@needs_digits
def test_a_trace_that_cannot_be_written_is_known_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr("hwmodel.trainer.train._epoch", None)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "t.json", tmp_path):
        result = run.invoke(app, ["--trace", str(place), "--epochs", "1"])
        assert result.exit_code == 2
        assert result.output.startswith(f"hwmodel: {place}: cannot be written: ")


@pytest.mark.parametrize("name", ["bold", "fp"])
def test_the_figure_shows_what_the_trace_holds(name, tmp_path):
    trace = train(small.settings(name), small.images())
    figure = training_figure(trace)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels[:2] == ["training loss, nat", "accuracy, %"]
    loss = figure.axes[0].lines[0]
    assert list(loss.get_xdata()) == [5, 10, 15]
    assert list(loss.get_ydata()) == [e.loss for e in trace.epochs]
    test = figure.axes[1].lines[0]
    assert list(test.get_ydata()) == [100 * e.accuracy for e in trace.epochs]
    if name == "bold":
        lines = figure.axes[2].lines
        assert [line.get_label() for line in lines] == ["conv2", "conv3", "side", "fc4"]
        assert lines[0].get_ydata()[0] == 100 * trace.epochs[0].layers[1].flip_rate
    assert len(figure.axes) == (3 if name == "bold" else 2)
    figure.savefig(tmp_path / "f.png")


def test_the_figure_of_signals_shows_means_and_deviations(hwmodel, tmp_path):
    """The deviation is sqrt(rms^2 - mean^2); a trace without means has no such figure."""
    trace = train(small.settings(), small.images())
    means, deviations, flips = signals_figure(trace).axes
    names = [layer.name for layer in trace.layers]
    assert [line.get_label() for line in means.lines] == names
    assert [line.get_label() for line in deviations.lines] == names
    assert [line.get_label() for line in flips.lines] == ["conv2", "conv3", "side", "fc4"]
    seen = [epoch.layers[1].signal for epoch in trace.epochs]
    assert list(means.lines[1].get_ydata()) == [s.mean for s in seen]
    spread = [(s.rms**2 - s.mean**2) ** 0.5 for s in seen]
    assert list(deviations.lines[1].get_ydata()) == pytest.approx(spread)
    write_trace(trace, tmp_path / "t.json")
    assert hwmodel("plot", "t.json", "--kind", "signals", "-o", "s.svg")[0] == 0
    write_trace(made(), tmp_path / "old.json")
    code, _, err = hwmodel("plot", "old.json", "--kind", "signals", "-o", "o.svg")
    assert (code, err) == (
        2, "hwmodel: the trace of conv-small by bold, seed 0 has no means of signals; train anew\n"
    )  # fmt: skip
    code, _, err = hwmodel("plot", "t.json", "--kind", "bars", "-o", "o.svg")
    assert (code, err) == (
        2, "hwmodel: t.json: a trace is drawn as kind training or signals, not bars\n"
    )  # fmt: skip


@pytest.mark.parametrize("highest", [0.0085, 0.4])
def test_flip_rates_have_plain_numbers_on_their_axis(highest):
    """Within a decade Matplotlib numbers minor ticks, in mathematics, which is switched off."""
    trace = train(small.settings(epochs=1), small.images())
    (epoch,) = trace.epochs
    rates = (highest, 0.0011)
    layers = [
        layer.model_copy(update={"flip_rate": rates[i % 2]}) for i, layer in enumerate(epoch.layers)
    ]
    shown = trace.model_copy(
        update={"epochs": (epoch.model_copy(update={"layers": tuple(layers)}),)}
    )
    figure = training_figure(shown)
    figure.canvas.draw()
    axis = figure.axes[2].yaxis
    texts = [label.get_text() for label in axis.get_ticklabels(which="both")]
    numbers = [float(text) for text in texts if text]  # none is a power written out
    assert len([n for n in numbers if 0.11 <= n <= 100 * highest]) >= 2


def test_deviations_have_plain_numbers_and_the_legend_is_below_the_panels(tmp_path):
    """Within a decade, from 0.003 to 0.006, minor ticks had numbers in TeX."""
    trace = train(small.settings(epochs=1), small.images())
    (epoch,) = trace.epochs
    layers = []
    for index, layer in enumerate(epoch.layers):
        given = {"mean": 0.0, "rms": 0.003 * (1 + index % 2)}
        layers.append(layer.model_copy(update={"signal": layer.signal.model_copy(update=given)}))
    epochs = (epoch.model_copy(update={"layers": tuple(layers)}),)
    figure = signals_figure(trace.model_copy(update={"epochs": epochs}))
    figure.canvas.draw()
    axis = figure.axes[1].yaxis
    texts = [label.get_text() for label in axis.get_ticklabels(which="both")]
    assert 0.005 in [float(text) for text in texts if text]  # none is a power written out
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == [layer.name for layer in trace.layers]
    lowest = min(panel.get_window_extent().y0 for panel in figure.axes)
    assert legend.get_window_extent().y1 < lowest
    colours = [{line.get_label(): line.get_color() for line in a.lines} for a in figure.axes]
    assert colours[2].items() <= colours[0].items() == colours[1].items()


def test_the_figure_of_a_frozen_run_has_no_flips_to_draw(tmp_path):
    trace = train(small.settings(freeze=True), small.images())
    figure = training_figure(trace)
    assert not figure.axes[2].lines
    figure.savefig(tmp_path / "f.png")


def test_a_trace_takes_no_input_s_place(hwmodel, tmp_path):
    (tmp_path / "other.yaml").write_text("name: mine\n")
    code, _, err = hwmodel("train", "--epochs", "1", "--trace", "other.yaml")
    assert (code, (tmp_path / "other.yaml").read_text()) == (2, "name: mine\n")
    assert err == "hwmodel: --trace other.yaml: would be written over what looks like an input\n"
