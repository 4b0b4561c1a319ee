"""What the flags of `metrics serve`, `print` and `backfill` refuse, before any cluster is asked."""

import os

import pytest

from kubectl_ghost import cli
from kubectl_ghost.conventions.exit_codes import ExitCode

NO_CLUSTER = ["--kubeconfig", "/dev/null", "--server", "https://127.0.0.1:1"]
REACHED = "127.0.0.1:1 was refused"
"""What is said when everything else is as it should be."""


def refused(capfd, *arguments):
    code = cli.run(["metrics", *arguments, *NO_CLUSTER])
    out, err = capfd.readouterr()
    assert out == ""
    return code, err


@pytest.mark.parametrize("verb", ["print", "serve", "backfill", "port-forward"])
@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--time-scale", "1e308", "It is a number from 0.000001 to 1000000"),
        ("--time-scale", "1e-320", "It is a number from 0.000001 to 1000000"),
        ("--time-scale", "nan", "It is a number from 0.000001 to 1000000"),
        ("--time-scale", "0", "It is a number from 0.000001 to 1000000"),
        ("--jitter", "nan", "It is a percentage from 0 to 100"),
        ("--jitter", "100.1", "It is a percentage from 0 to 100"),
        ("--compat", "hostname,nonsense", 'unknown --compat "nonsense"'),
        ("--fields", "DCGM_FI_DRIVER_VERSION", "only labels are named"),
        ("--fields", "x" * 100_000, "unknown field or group of fields 'x"),
    ],
)
def test_values_without_a_meaning(verb, flag, value, words, capfd):
    code, err = refused(capfd, verb, flag, value)
    assert code == ExitCode.ERROR
    assert words in err
    assert len(err) < 1000


@pytest.mark.parametrize("value", ["1e-6", "1000000"])
def test_the_slowest_and_the_fastest_time(value, capfd):
    code, err = refused(capfd, "print", "--time-scale", value)
    assert code == ExitCode.ERROR
    assert REACHED in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no line names a field"),
        (b" \n\n# nothing\n", "no line names a field"),
        (b"\x7fELF\x9e\x00", "it is no UTF-8 text"),
        (b"DCGM_FI_DEV_GPU_UTIL, gauge, a\x00b\n", "line 1: a character that does not print is out of place"),
        (b"\xef\xbb\xbfDCGM_FI_DEV_GPU_UTIL, gauge, a\n", "line 1: a character that does not print is out of place"),
        (b"DCGM_FI_DRIVER_VERSION, label, a\n", "only labels are named"),
    ],
)
def test_files_that_are_no_counters_file(content, words, tmp_path, capfd):
    (tmp_path / "counters.csv").write_bytes(content)
    code, err = refused(capfd, "print", "--fields", str(tmp_path / "counters.csv"))
    assert code == ExitCode.ERROR
    assert words in err


@pytest.mark.parametrize("size", [2**20 + 1, None])
def test_a_file_without_an_end_is_not_read_to_its_end(size, tmp_path, capfd):
    path = "/dev/zero"
    if size is not None:
        path = str(tmp_path / "counters.csv")
        with open(path, "wb") as file:
            os.truncate(file.fileno(), size)
    code, err = refused(capfd, "print", "--fields", path)
    assert code == ExitCode.ERROR
    assert f"error: cannot read --fields {path}: it is larger than a MiB" in err


def test_a_field_with_a_label_beside_it_is_enough(capfd):
    code, err = refused(capfd, "print", "--fields", "DCGM_FI_DRIVER_VERSION,DCGM_FI_DEV_GPU_UTIL")
    assert code == ExitCode.ERROR
    assert REACHED in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--step", "0"], "--step must be at least 1ms and no longer than --from"),
        (["--step", "0.0001", "--from", "60s"], "--step must be at least 1ms and no longer than --from"),
        (["--from", "10s"], "--step must be at least 1ms and no longer than --from"),
        (["--from", "8760h"], "1051200 samples of each series are more than 100000"),
        (["-o", ""], "--output is empty"),
    ],
)
def test_what_backfill_cannot_write(flags, words, capfd):
    code, err = refused(capfd, "backfill", *flags)
    assert code == ExitCode.USAGE
    assert words in err
