#include "node/live/interference.h"

#include <math.h>

static double usual(double given, double otherwise) { return given != 0 ? given : otherwise; }

void interference_init(InterferenceMonitor *w, const InterferenceOptions *o, const NodeMachine *m) {
    *w = (InterferenceMonitor){.l3_bytes = (double)m->slice_bytes * m->n_slices,
                               .dram_bytes_ns = (double)m->dram_bytes_ns};
    w->o.memory = usual(o->memory, 0.95);
    w->o.doubt = usual(o->doubt, 0.02);
    w->o.slack = usual(o->slack, 0.25);
    w->o.lost_most = usual(o->lost_most, 0.03);
}

void interference_begin(InterferenceMonitor *w, InterferenceLoad l) {
    w->running.l3_bytes += l.l3_bytes;
    w->running.dram_bytes_ns += l.dram_bytes_ns;
}

void interference_end(InterferenceMonitor *w, InterferenceLoad l) {
    w->running.l3_bytes = fmax(w->running.l3_bytes - l.l3_bytes, 0);
    w->running.dram_bytes_ns = fmax(w->running.dram_bytes_ns - l.dram_bytes_ns, 0);
}

// Levels as in profiles: each takes 1/9 of the L3, two halve the bandwidth.
static double forward(const InterferenceMonitor *w) {
    const double most = NODE_LEVELS - 1;
    double       moved = fmax(w->running.dram_bytes_ns, w->measured);
    double       l3 = w->l3_bytes > 0 ? w->running.l3_bytes / w->l3_bytes * most : 0;
    double       left = w->dram_bytes_ns > 0 ? 1 - moved / w->dram_bytes_ns : 1;
    double       dram = left > 0 ? fmin(-2 * log2(left), most) : most;
    return fmin(fmax(l3, dram), most);
}

static double correction(const InterferenceMonitor *w) { return w->top / (w->bottom + w->o.doubt); }

// Recursive least squares of ln(time / alone) = slope * (forward + correction) with exponential
// decay. Blocks insensitive to interference have a small slope and thus little weight.
void interference_sample(InterferenceMonitor *w, const InterferenceSample *s) {
    if (!(s->wall_ns > 0) || !(s->expected_ns > 0)) return;
    if (s->stolen_ns > w->o.lost_most * s->wall_ns) {
        w->preempted++;
        return;
    }
    double y = log(s->wall_ns / s->expected_ns) - s->slope * forward(w);
    w->top = w->top * w->o.memory + s->slope * y;
    w->bottom = w->bottom * w->o.memory + s->slope * s->slope;
    w->samples++;
}

float interference_pressure(const InterferenceMonitor *w) {
    return (float)fmin(fmax(forward(w) + correction(w), 0), NODE_LEVELS - 1);
}

uint32_t interference_level(InterferenceMonitor *w) {
    double p = (double)interference_pressure(w);
    if (fabs(p - w->level) > 0.5 + w->o.slack) w->level = (uint32_t)(p + 0.5);
    return w->level;
}
