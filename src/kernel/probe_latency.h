// ProbeLatency: what it costs to reach another core, to wake a thread, to look at a clock.
#pragma once

#include <time.h>

#include "base/cpu.h"
#include "base/time.h"
#include "kernel/probe.h"

// Over pairs of allowed cores. Machines with one core have none: no samples.
MUST_USE Err probe_hops(const Cpu *cpu, TimeNs budget, ProbeSpread *out);
MUST_USE Err probe_wakes(const Cpu *cpu, TimeNs budget, ProbeSpread *out);

double probe_clock_cost(clockid_t id);  // nanoseconds
