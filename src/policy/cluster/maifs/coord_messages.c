// Max-plus message passing. An agent adds received messages to its gains and sends each neighbour
// the best total it can reach for each of the neighbour's choices. Agents send one after the other,
// as equal agents that send at once choose alike.
#include <math.h>
#include <string.h>

#include "policy/cluster/maifs/coord_int.h"

static float *pair_at(const Coordination *a, uint32_t arc) {
    return a->pair + (size_t)arc * CHOICES * CHOICES;
}

// Two claims on one job: a penalty if one of them suffices, a bonus if both are needed.
static float same_job(const Coordination *a, uint32_t mine, uint32_t its) {
    uint32_t need = coord_need(a, mine);
    return a->give[mine] >= need || a->give[its] >= need ? 0 - a->params.penalty : a->params.bonus;
}

// to [wide] += scale * from
static void add_scaled(float *restrict to, float scale, const float *restrict from, uint32_t wide) {
    for (uint32_t d = 0; d < wide; d++) to[d] += scale * from[d];
}

// Columns of idle and beyond the choices are 0, as their sides are.
static void learned_pairs(const Coordination *a, uint32_t i, uint32_t j, float *pair) {
    uint32_t     rank = a->p->rank, wide = (a->n_choices[j] + 3) / 4 * 4;
    const float *mine = a->side + (size_t)i * CHOICES * 2 * rank;
    const float *its = a->side + (size_t)j * CHOICES * 2 * rank;
    float        half = (float)(0.5 / a->scale);
    for (uint32_t c = 0; c < a->n_choices[i]; c++) {
        float *row = pair + c * CHOICES;
        memset(row, 0, CHOICES * sizeof *row);
        for (uint32_t r = 0; r < 2 * rank && c > 0; r++) {
            const float *across = its + (r < rank ? r + rank : r - rank) * CHOICES;
            add_scaled(row, mine[r * CHOICES + c] * half, across, wide);
        }
        for (uint32_t d = 0; d < wide; d++) row[d] = row[d] - row[d] == 0 ? row[d] : 0;
    }
}

// For each claim of j: i's claim on the same job and the payoff of that pair.
static void matches_of(const Coordination *a, const uint32_t *mine, uint32_t j, CoordMatch *match) {
    const uint32_t *its = a->choice + j * CHOICES;
    memset(match, 0, CHOICES * sizeof *match);
    for (uint32_t d = 1; d < a->n_choices[j]; d++) {
        uint32_t c = a->at_job[a->job[its[d]]];
        if (c > 0) match[d] = (CoordMatch){same_job(a, mine[c], its[d]), c};
    }
}

static void pairs_of(Coordination *a, uint32_t i) {
    const uint32_t *mine = a->choice + i * CHOICES;
    for (uint32_t c = 1; c < a->n_choices[i]; c++) a->at_job[a->job[mine[c]]] = (uint8_t)c;
    for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1]; arc++) {
        CoordMatch *match = a->match + (size_t)arc * CHOICES;
        float      *pair = pair_at(a, arc);
        matches_of(a, mine, a->arcs[arc].to, match);
        if (a->p->rank == 0) continue;
        learned_pairs(a, i, a->arcs[arc].to, pair);
        for (uint32_t d = 1; d < CHOICES; d++)
            if (match[d].of > 0) pair[match[d].of * CHOICES + d] += match[d].worth;
    }
    for (uint32_t c = 1; c < a->n_choices[i]; c++) a->at_job[a->job[mine[c]]] = 0;
}

static float pair_worth(const Coordination *a, uint32_t arc, uint32_t c, uint32_t d) {
    const CoordMatch *match = a->match + (size_t)arc * CHOICES + d;
    if (a->p->rank > 0) return pair_at(a, arc)[c * CHOICES + d];
    return match->of == c ? match->worth : 0;
}

// max over c of own(c) + pair(c, d), for the first `wide` values of d.
static void best_with(const float *restrict pair, uint32_t n, uint32_t wide,
                      const float *restrict own, float *restrict best) {
    for (uint32_t d = 0; d < wide; d++) best[d] = -INFINITY;
    for (uint32_t c = 0; c < n; c++)
        for (uint32_t d = 0; d < wide; d++) {
            float worth = own[c] + pair[c * CHOICES + d];
            best[d] = worth > best[d] ? worth : best[d];
        }
}

// The same if only pairs on the same job have a payoff.
static void best_apart(const Coordination *a, uint32_t arc, uint32_t n, const float *own,
                       float *best) {
    const CoordMatch *match = a->match + (size_t)arc * CHOICES;
    uint32_t          top = 0;
    float             first = own[0], second = -INFINITY;
    for (uint32_t c = 1; c < n; c++) {
        second = own[c] > first ? first : own[c] > second ? own[c] : second;
        top = own[c] > first ? c : top;
        first = own[c] > first ? own[c] : first;
    }
    best[0] = first;
    for (uint32_t d = 1; d < CHOICES; d++) {
        float others = match[d].of == top && top > 0 ? second : first;
        float same = match[d].of > 0 ? own[match[d].of] + match[d].worth : -INFINITY;
        best[d] = same > others ? same : others;
    }
}

// Message to neighbour j along an arc: the best of i's sums without j's own message.
static void send_message(Coordination *a, uint32_t i, uint32_t arc) {
    uint32_t     j = a->arcs[arc].to, n = a->n_choices[j];
    const float *received = a->message + (size_t)a->arcs[arc].back * CHOICES;
    float       *sent = a->message + (size_t)arc * CHOICES, *its = a->sum + (size_t)j * CHOICES;
    float        own[CHOICES], now[CHOICES], mean = 0, stays = a->params.damping;
    for (uint32_t c = 0; c < CHOICES; c++) own[c] = a->sum[(size_t)i * CHOICES + c] - received[c];
    if (a->p->rank > 0)
        best_with(pair_at(a, arc), a->n_choices[i], (n + 3) / 4 * 4, own, now);
    else
        best_apart(a, arc, a->n_choices[i], own, now);
    for (uint32_t d = 0; d < n; d++) mean += now[d];
    mean /= (float)n;
    for (uint32_t d = 0; d < n; d++) {
        float next = stays * sent[d] + (1 - stays) * (now[d] - mean);
        its[d] += next - sent[d];
        sent[d] = next;
    }
}

static uint32_t best_choice(const Coordination *a, uint32_t i) {
    const float *sum = a->sum + (size_t)i * CHOICES;
    uint32_t     best = 0;
    for (uint32_t c = 1; c < a->n_choices[i]; c++)
        if (sum[c] > sum[best]) best = c;
    return best;
}

// Value of all agents' best choices under the graph.
static double joint_value(Coordination *a) {
    double sum = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t c = best_choice(a, i);
        a->bid[i] = c;
        if (c > 0) sum += (double)a->gain[a->choice[i * CHOICES + c]];
    }
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1]; arc++) {
            uint32_t j = a->arcs[arc].to;
            if (i < j) sum += (double)pair_worth(a, arc, a->bid[i], a->bid[j]);
        }
    return sum;
}

void coord_pass_messages(Coordination *a) {
    double best = -INFINITY;
    size_t sums = (size_t)a->n * CHOICES * sizeof *a->sum;
    memset(a->message, 0, (size_t)a->n_arcs * CHOICES * sizeof *a->message);
    memset(a->at_job, 0, a->p->jobs);
    for (uint32_t i = 0; i < a->n; i++) pairs_of(a, i);
    for (uint32_t t = 0; t <= a->params.iterations; t++) {
        for (uint32_t i = 0; i < a->n && t > 0; i++)
            for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1]; arc++)
                send_message(a, i, arc);
        double value = joint_value(a);
        if (!(value > best)) continue;
        best = value;
        memcpy(a->best_sum, a->sum, sums);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const float *sum = a->best_sum + (size_t)i * CHOICES;
        a->idle_score[i] = sum[0];
        for (uint32_t c = 1; c < a->n_choices[i]; c++)
            a->score[a->choice[i * CHOICES + c]] = sum[c];
    }
}
