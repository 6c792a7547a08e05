// CpuSys: the hardware threads, cores and caches that Linux lists in a folder, without allocating.
#pragma once

#include "base/cpu.h"

// Fills in the threads, what they share and the caches; dir is "/sys/devices/system/cpu" or its
// like. What is not told of a thread makes it a core of its own.
MUST_USE Err cpu_sys_read(const char *dir, Arena *a, Cpu *c);
