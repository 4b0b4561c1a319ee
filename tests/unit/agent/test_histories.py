"""Whatever happens on a cluster, in whatever order it is heard of: the agent shows what is, and as hardware would."""

from __future__ import annotations

import random
from collections.abc import Sized

from hypothesis import given, note, settings
from hypothesis import strategies as st

from ghost_agent.fleet import NODES
from tests.unit.agent.history import STEPS, History
from tests.unit.agent.kube import agent
from tests.unit.agent.oracle import shown
from tests.unit.agent.series import POD_LABELS, read
from tests.unit.agent.world import World, without_workload

NOT_IN_MIG = {f"DCGM_FI_DEV_{name}_UTIL" for name in ("GPU", "MEM_COPY", "ENC", "DEC")}
COUNTERS = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_THERMAL_VIOLATION",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
}
XID = "DCGM_FI_DEV_XID_ERRORS"
POWER = "DCGM_FI_DEV_POWER_USAGE"
BUSY = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
FRAMEBUFFER = ["DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_RESERVED"]
FIELDS = ",".join([*sorted(COUNTERS | NOT_IN_MIG), XID, POWER, BUSY, *FRAMEBUFFER])
MEMORY = {"h100-sxm5-80gb": 81559, "a30": 24576, "t4": 15360, "1g.10gb": 9984, "1g.20gb": 20096, "2g.20gb": 20096}
MEMORY |= {"3g.40gb": 40448, "4g.40gb": 40448, "7g.80gb": 81152, "1g.6gb": 5952, "2g.12gb": 11968, "4g.24gb": 24000}
"""MiB of the boards and of their instances."""
OPTIONS = [{}, {}, {"jitter": 20.0, "seed": 7}, {"time_scale": 60.0}]


class Laws:
    """What holds at every look at a history; remembers what counters have come to."""

    def __init__(self, history):
        self.history = history
        self.counted = {}
        self.idle = {}

    def look(self):
        """A scrape, and everything that has to be true of it."""
        history = self.history
        view = history.world.view()
        text = history.agent.text(history.moment)
        series = read(text)
        self.each_is_there_once(series)
        self.users_are_those_of_the_oracle(series, shown(view))
        self.readings_hold_together(series, view)
        self.counters_never_fall(series, view)
        self.nodes_have_their_part_of_the_whole(text, view)
        self.another_agent_shows_the_same(text)

    def each_is_there_once(self, series):
        keys = [one.key for one in series]
        assert len(keys) == len(set(keys))

    def users_are_those_of_the_oracle(self, series, expected):
        found = {}
        for one in series:
            held = found.setdefault(one.gpu, {}).setdefault(one.name, set())
            if POD_LABELS & set(one.labels):
                held.add((*one.user, one.labels.get("dra_claim_name", ""), one.labels.get("dra_device_name", "")))
        assert set(found) == set(expected)
        for place, fields in found.items():
            assert all(held == expected[place] for held in fields.values()), (place, fields, expected[place])

    def readings_hold_together(self, series, view):
        by_device = {}
        for one in series:
            by_device.setdefault(one.gpu, {})[one.name] = one.value
        for (name, index, profile, _), values in by_device.items():
            machine = view.machines[name]
            gpu = machine.gpus[index]
            assert values[XID] == last_xid(gpu)
            if ("xid", 79) in gpu.faults:
                assert set(values) == {XID}
                continue
            # An A30 that is split on demand is in MIG mode all the time.
            in_mig = profile or gpu.layout is not None or (machine.dynamic and machine.model == "a30")
            assert set(values) & NOT_IN_MIG == (set() if in_mig else NOT_IN_MIG)
            memory = [values[name] for name in FRAMEBUFFER]
            assert min(memory) >= 0
            assert sum(memory) == MEMORY[profile or machine.model]
            assert 0 <= values[BUSY] <= 1
            if values[BUSY] or values.get("DCGM_FI_DEV_GPU_UTIL"):
                assert values[POWER] > self.idle_power(name, machine, index)

    def counters_never_fall(self, series, view):
        if self.history.restarted:
            self.counted, self.history.restarted = {}, False
        # A node that was gone comes back as another machine.
        self.counted = {key: value for key, value in self.counted.items() if key[0] in view.machines}
        now = {(*one.gpu[:2], one.name): one.value for one in series if one.name in COUNTERS}
        for key, value in now.items():
            assert value >= self.counted.get(key, 0), (key, value, self.counted[key])
        self.counted |= now

    def nodes_have_their_part_of_the_whole(self, text, view):
        history = self.history
        for name in history.chance.sample(sorted(view.machines), min(1, len(view.machines))):
            part = history.agent.text(history.moment, name).splitlines()
            mine = [line for line in text.splitlines() if f',Hostname="{name}"' in line]
            assert [line for line in part if not line.startswith("#")] == mine

    def another_agent_shows_the_same(self, text):
        history = self.history
        first, second = (history.newcomer().text(history.moment) for _ in range(2))
        assert first == second
        assert without_counts(first) == without_counts(text)
        assert history.agent.text(history.moment) == text

    def idle_power(self, name, machine, index):
        """What a GPU draws on which nothing has ever run."""
        if (name, machine.model, index) not in self.idle:
            world, resting = World(), agent(fields=POWER)
            world.write_node(name, without_workload(machine))
            world.hear(resting.fleet, NODES)
            self.idle |= {(name, machine.model, one.gpu[1]): one.value for one in read(resting.text())}
        return self.idle[name, machine.model, index]


def last_xid(gpu):
    """The latest code: the faults of these tests begin after what the driver remembers."""
    return max([code for kind, code in gpu.faults if kind == "xid"], default=gpu.last_xid or 0)


def without_counts(text):
    """A scrape without the values of its counters, which may begin anew."""
    return [line.rpartition(" ")[0] if line.partition("{")[0] in COUNTERS else line for line in text.splitlines()]


def leftovers(*objects):
    """What is left in the collections of objects that should know of nothing any more."""
    collections = {name: value for item in objects for name, value in vars(item).items() if isinstance(value, Sized)}
    return {name: value for name, value in collections.items() if len(value) and name != "_words"}


steps = st.lists(st.tuples(st.sampled_from(["look"] * 6 + STEPS), st.integers(0, 2**16)), min_size=30, max_size=60)


@settings(max_examples=40, deadline=None)
@given(options=st.sampled_from(OPTIONS), seed=st.integers(0, 2**16), steps=steps)
def test_any_history(options, seed, steps):
    history = History(random.Random(seed), fields=FIELDS, **options)
    laws = Laws(history)
    for _ in range(3):
        history.node_is_made_or_declared_anew()
        history.pod_with_a_claim()
        history.pod_that_is_counted()
    history.everything_arrives()
    laws.look()
    for name, number in steps:
        note(f"{name} {number}")
        history.chance.seed(number)
        laws.look() if name == "look" else getattr(history, name)()
    history.everything_arrives()
    laws.look()
    history.all_goes()
    assert history.agent.text(history.moment) == ""
    assert leftovers(history.agent.fleet, history.agent.snapshot, history.agent.snapshot._sampler._counters) == {}
