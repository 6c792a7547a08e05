#include "compile/tune/pressure.h"

#include <math.h>

#include "base/err.h"

Pressure pressure_of(const Cpu *cpu, const Probe *p) {
    const ProbeRate *dram = &p->read[PROBE_DRAM], *l3 = &p->read[PROBE_L3];
    if (l3->bytes == 0) l3 = dram;  // no L3
    return (Pressure){
        .l3_bytes = cpu->l3_bytes / 2,  // the remainder: code, tables, conflict misses
        .l3_one = l3->one,
        .l3_all = l3->all,
        .dram_one = dram->one,
        .dram_all = dram->all,
    };
}

PressureShare pressure_share(uint32_t level) {
    CHECK(level < PRESSURE_LEVELS);
    return (PressureShare){.l3 = 1.0 - (double)level / (PRESSURE_LEVELS - 1),
                           .dram = pow(0.5, level / 2.0)};
}

static double rate(double one, double all, uint32_t cores) { return fmin(one * cores, all); }

double pressure_time(const Pressure *m, const Candidate *c, uint32_t k, uint32_t cores,
                     PressureShare share) {
    double room = (double)m->l3_bytes * share.l3;
    double wanted = (double)c->traffic.l3_bytes, moved = (double)c->traffic.beyond_l2_bytes;
    double near = wanted <= room ? 1 : room / wanted;
    double l3 = rate(m->l3_one, m->l3_all, cores);
    double dram = rate(m->dram_one, m->dram_all * share.dram, cores);
    double memory = moved * near / l3 + moved * (1 - near) / dram;
    return fmax((double)c->time_ns[k], memory);
}
