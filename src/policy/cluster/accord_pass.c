// Messages: what each choice of a partner would be worth to those behind it. An agent adds what it
// heard to its own gains, and tells each partner the best it could then do for each of that
// partner's choices. Agents speak in turn, for those who speak at once and are alike choose alike.
#include <math.h>
#include <string.h>

#include "policy/cluster/accord_int.h"

static float *pair_at(const Accord *a, uint32_t arc) {
    return a->pair + (size_t)arc * CHOICES * CHOICES;
}

// Two claims on one job: one is for nothing, or they need each other.
static float same_job(const Accord *a, uint32_t mine, uint32_t its) {
    uint32_t need = accord_need(a, mine);
    return a->give[mine] >= need || a->give[its] >= need ? 0 - a->rules.penalty : a->rules.bonus;
}

static void learned_pairs(const Accord *a, uint32_t i, uint32_t j, float *pair) {
    uint32_t     rank = a->p->rank, width = 2 * rank;
    const float *mine = a->side + (size_t)i * CHOICES * width;
    const float *its = a->side + (size_t)j * CHOICES * width;
    float        half = (float)(0.5 / a->scale);
    for (uint32_t c = 1; c < a->n_choices[i]; c++)
        for (uint32_t d = 1; d < a->n_choices[j]; d++) {
            float sum = 0;
            for (uint32_t r = 0; r < rank; r++)
                sum += mine[c * width + r] * its[d * width + rank + r] +
                       mine[c * width + rank + r] * its[d * width + r];
            pair[c * CHOICES + d] = isfinite(sum) ? sum * half : 0;
        }
}

static void pairs_of(Accord *a, uint32_t i) {
    const uint32_t *mine = a->choice + i * CHOICES;
    for (uint32_t c = 1; c < a->n_choices[i]; c++) a->at_job[a->job[mine[c]]] = (uint8_t)c;
    for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1]; arc++) {
        uint32_t        j = a->arcs[arc].to;
        const uint32_t *its = a->choice + j * CHOICES;
        float          *pair = pair_at(a, arc);
        memset(pair, 0, (size_t)CHOICES * CHOICES * sizeof *pair);
        if (a->p->rank > 0) learned_pairs(a, i, j, pair);
        for (uint32_t d = 1; d < a->n_choices[j]; d++) {
            uint32_t c = a->at_job[a->job[its[d]]];
            if (c > 0) pair[c * CHOICES + d] += same_job(a, mine[c], its[d]);
        }
    }
    for (uint32_t c = 1; c < a->n_choices[i]; c++) a->at_job[a->job[mine[c]]] = 0;
}

// What partner j is told along an arc: the best of i's sums, without what j itself said.
static void tell(Accord *a, uint32_t i, uint32_t arc) {
    uint32_t     j = a->arcs[arc].to, n = a->n_choices[j];
    const float *heard = a->message + (size_t)a->arcs[arc].back * CHOICES;
    const float *own = a->sum + (size_t)i * CHOICES, *pair = pair_at(a, arc);
    float       *said = a->message + (size_t)arc * CHOICES, *its = a->sum + (size_t)j * CHOICES;
    float        now[CHOICES], mean = 0, stays = a->rules.damping;
    for (uint32_t d = 0; d < CHOICES; d++) now[d] = -INFINITY;
    for (uint32_t c = 0; c < a->n_choices[i]; c++) {
        float without = own[c] - heard[c];
        for (uint32_t d = 0; d < CHOICES; d++) {
            float worth = without + pair[c * CHOICES + d];
            now[d] = worth > now[d] ? worth : now[d];
        }
    }
    for (uint32_t d = 0; d < n; d++) mean += now[d];
    mean /= (float)n;
    for (uint32_t d = 0; d < n; d++) {
        float told = stays * said[d] + (1 - stays) * (now[d] - mean);
        its[d] += told - said[d];
        said[d] = told;
    }
}

static uint32_t best_choice(const Accord *a, uint32_t i) {
    const float *sum = a->sum + (size_t)i * CHOICES;
    uint32_t     best = 0;
    for (uint32_t c = 1; c < a->n_choices[i]; c++)
        if (sum[c] > sum[best]) best = c;
    return best;
}

// Of everybody's best choice, as the graph sees it.
static double joint_value(Accord *a) {
    double sum = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t c = best_choice(a, i);
        a->wish[i] = c;
        if (c > 0) sum += (double)a->gain[a->choice[i * CHOICES + c]];
    }
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1]; arc++) {
            uint32_t j = a->arcs[arc].to;
            if (i < j) sum += (double)pair_at(a, arc)[a->wish[i] * CHOICES + a->wish[j]];
        }
    return sum;
}

void accord_pass(Accord *a) {
    double best = -INFINITY;
    size_t sums = (size_t)a->n * CHOICES * sizeof *a->sum;
    memset(a->message, 0, (size_t)a->n_arcs * CHOICES * sizeof *a->message);
    memset(a->at_job, 0, a->p->jobs);
    for (uint32_t i = 0; i < a->n; i++) pairs_of(a, i);
    for (uint32_t t = 0; t <= a->rules.iterations; t++) {
        for (uint32_t i = 0; i < a->n && t > 0; i++)
            for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1]; arc++) tell(a, i, arc);
        double value = joint_value(a);
        if (!(value > best)) continue;
        best = value;
        memcpy(a->best_sum, a->sum, sums);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const float *sum = a->best_sum + (size_t)i * CHOICES;
        a->rest[i] = sum[0];
        for (uint32_t c = 1; c < a->n_choices[i]; c++)
            a->score[a->choice[i * CHOICES + c]] = sum[c];
    }
}
