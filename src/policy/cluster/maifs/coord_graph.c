// The coordination graph: agents with a high conflict probability or widely varying pair payoffs
// are joined; the most likely first, up to `degree` neighbours each.
#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "policy/cluster/maifs/coord_int.h"

static uint32_t stride_of(const Coordination *a) { return (a->p->jobs + 7) / 8 * 8; }

static void choose(Coordination *a, uint32_t i, uint32_t entry) {
    uint32_t at = a->n_choices[i]++;
    a->choice[i * CHOICES + at] = entry;
    a->sum[i * CHOICES + at] = a->gain[entry];
}

// The best claims, then the best gang claims among the rest.
static void choices_of(Coordination *a, uint32_t i) {
    uint32_t e = a->first[i], end = a->first[i + 1];
    for (uint32_t c = 0; c < CHOICES; c++) {
        a->choice[i * CHOICES + c] = COORD_NONE;
        a->sum[i * CHOICES + c] = c == 0 ? 0 : -INFINITY;
    }
    a->n_choices[i] = 1;
    for (; e < end && a->n_choices[i] < CHOICES_PLAIN; e++) choose(a, i, e);
    for (; e < end && a->n_choices[i] < CHOICES; e++)
        if (a->give[e] < coord_need(a, e)) choose(a, i, e);
}

static void sides_of(Coordination *a, uint32_t i) {
    const CoordProblem *p = a->p;
    uint32_t            rank = p->rank;
    float              *side = a->side + (size_t)i * CHOICES * 2 * rank;
    memset(side, 0, (size_t)CHOICES * 2 * rank * sizeof *side);
    for (uint32_t c = 1; c < a->n_choices[i]; c++) {
        uint32_t job = a->job[a->choice[i * CHOICES + c]];
        size_t   at = ((size_t)a->agent_ids[i] * p->jobs + job) * rank;
        for (uint32_t r = 0; r < rank; r++) {
            float left = p->left[at + r], right = p->right[at + r];
            side[r * CHOICES + c] = isfinite(left) ? left : 0;
            side[(rank + r) * CHOICES + c] = isfinite(right) ? right : 0;
        }
    }
}

// Means over an agent's claims of left, right and their products, and the same with left and right
// swapped as a neighbour needs it. Rows are zero-padded to a multiple of 8.
static void moments_of(Coordination *a, uint32_t i) {
    uint32_t     rank = a->p->rank, wide = 2 * rank;
    const float *side = a->side + (size_t)i * CHOICES * wide;
    float       *mean = a->mean + (size_t)i * COORD_WIDE;
    float       *mean_across = a->mean_across + (size_t)i * COORD_WIDE;
    float       *product = a->product + (size_t)i * COORD_WIDE * COORD_WIDE;
    float       *product_across = a->product_across + (size_t)i * COORD_WIDE * COORD_WIDE;
    float        each = a->n_choices[i] > 1 ? 1.0f / (float)(a->n_choices[i] - 1) : 0;
    memset(mean, 0, COORD_WIDE * sizeof *mean);
    memset(mean_across, 0, COORD_WIDE * sizeof *mean);
    memset(product, 0, (size_t)COORD_WIDE * COORD_WIDE * sizeof *product);
    memset(product_across, 0, (size_t)COORD_WIDE * COORD_WIDE * sizeof *product);
    for (uint32_t x = 0; x < wide; x++) {
        uint32_t x_across = x < rank ? x + rank : x - rank;
        for (uint32_t c = 1; c < a->n_choices[i]; c++) mean[x] += side[x * CHOICES + c] * each;
        mean_across[x_across] = mean[x];
        for (uint32_t y = 0; y < wide; y++) {
            uint32_t y_across = y < rank ? y + rank : y - rank;
            float    sum = 0;
            for (uint32_t c = 1; c < a->n_choices[i]; c++)
                sum += side[x * CHOICES + c] * side[y * CHOICES + c];
            product[x * wide + y] = sum * each;
            product_across[x_across * wide + y_across] = sum * each;
        }
    }
}

static float dot(const float *x, const float *y, uint32_t n) {  // n is a multiple of 8
    float lane[8] = {0};
    for (uint32_t i = 0; i < n; i += 8)
        for (uint32_t l = 0; l < 8; l++) lane[l] += x[i + l] * y[i + l];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// Variance of the pair payoff f over all claims of both agents: E f^2 - (E f)^2.
static float variance_of(const Coordination *a, uint32_t i, uint32_t j) {
    uint32_t square = 4 * a->p->rank * a->p->rank;
    size_t   x = (size_t)i * COORD_WIDE, y = (size_t)j * COORD_WIDE;
    float    mean = dot(a->mean + x, a->mean_across + y, COORD_WIDE) / 2;
    float    squares =
        dot(a->product + x * COORD_WIDE, a->product_across + y * COORD_WIDE, (square + 7) / 8 * 8) /
        4;
    float variance = (squares - mean * mean) / (float)(a->scale * a->scale);
    return variance > 0 && isfinite(variance) ? variance : 0;
}

// Softmax over gains: the probability that the agent claims each job.
static void chances_of(Coordination *a, uint32_t i) {
    const uint32_t *choice = a->choice + i * CHOICES;
    float          *chance = a->chance + (size_t)i * stride_of(a), weight[CHOICES];
    float           best = a->gain[a->first[i]] > 0 ? a->gain[a->first[i]] : 0, all = 0;
    float           t = a->params.temperature > 1e-3f ? a->params.temperature : 1e-3f;
    memset(chance, 0, stride_of(a) * sizeof *chance);
    for (uint32_t c = 0; c < a->n_choices[i]; c++) {
        weight[c] = repro_exp(((c == 0 ? 0 : a->gain[choice[c]]) - best) / t);
        all += weight[c];
    }
    for (uint32_t c = 1; c < a->n_choices[i]; c++) chance[a->job[choice[c]]] = weight[c] / all;
}

static uint32_t ring_distance(const Coordination *a, uint32_t i,
                              uint32_t j) {  // distance on a ring of all agents
    uint32_t distance = i < j ? j - i : i - j;
    return distance < a->n - distance ? distance : a->n - distance;
}

// Ties go to the nearer agent on the ring, so that equal agents do not all pick the same few.
static void consider(Coordination *a, uint32_t i, uint32_t j, float weight) {
    CoordNeighbor *near = a->near + (size_t)i * a->params.degree;
    uint32_t       at = a->n_near[i];
    if (at == a->params.degree) {
        const CoordNeighbor *last = &near[at - 1];
        if (weight < last->weight) return;
        if (weight == last->weight && ring_distance(a, i, j) >= ring_distance(a, i, last->agent))
            return;
        at--;
    } else {
        a->n_near[i]++;
    }
    for (; at > 0; at--) {
        const CoordNeighbor *before = &near[at - 1];
        if (before->weight > weight) break;
        if (before->weight == weight &&
            ring_distance(a, i, before->agent) <= ring_distance(a, i, j))
            break;
        near[at] = *before;
    }
    near[at] = (CoordNeighbor){weight, j};
}

static void weigh_pairs(Coordination *a) {
    uint32_t stride = stride_of(a);
    memset(a->n_near, 0, a->n * sizeof *a->n_near);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = i + 1; j < a->n; j++) {
            float w = dot(a->chance + (size_t)i * stride, a->chance + (size_t)j * stride, stride);
            if (a->p->rank > 0 && a->params.spread > 0)
                w += a->params.spread * variance_of(a, i, j);
            if (!(w > a->params.least)) continue;
            consider(a, i, j, w);
            consider(a, j, i, w);
        }
}

static bool is_near(const Coordination *a, uint32_t i, uint32_t j) {
    for (uint32_t d = 0; d < a->n_near[i]; d++)
        if (a->near[(size_t)i * a->params.degree + d].agent == j) return true;
    return false;
}

// Candidate edges by descending probability; an agent with `degree` neighbours takes no more.
static void join_likely(Coordination *a) {
    uint32_t n = 0, degree = a->params.degree;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t d = 0; d < a->n_near[i]; d++) {
            CoordNeighbor near = a->near[(size_t)i * degree + d];
            if (near.agent < i && is_near(a, near.agent, i)) continue;
            a->keys[n++] = packed_key_descending(near.weight, i * degree + d);
        }
    packed_keys_sort(a->keys, n);
    uint32_t *has = a->arc_first;
    memset(has, 0, a->n * sizeof *has);
    for (uint32_t e = 0; e < n; e++) {
        uint32_t at = packed_key_tie(a->keys[e]), i = at / degree, j = a->near[at].agent;
        if (has[i] >= degree || has[j] >= degree) continue;
        has[i]++;
        has[j]++;
        a->edges[a->n_edges++] = (CoordEdge){i < j ? i : j, i < j ? j : i};
    }
}

static void join_fixed(Coordination *a) {
    uint32_t all = a->p->agents, half = a->params.degree / 2;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = i + 1; j < a->n; j++) {
            uint32_t x = a->agent_ids[i], y = a->agent_ids[j], distance = x < y ? y - x : x - y;
            distance = distance < all - distance ? distance : all - distance;
            if (all <= COORD_FULL || distance <= half) a->edges[a->n_edges++] = (CoordEdge){i, j};
        }
}

static void find_arcs(Coordination *a) {
    uint32_t *first = a->arc_first;
    memset(first, 0, (a->n + 1) * sizeof *first);
    for (uint32_t e = 0; e < a->n_edges; e++) {
        first[a->edges[e].a]++;
        first[a->edges[e].b]++;
    }
    for (uint32_t i = 0, at = 0; i <= a->n; i++) {
        at += first[i];
        first[i] = at;
    }
    for (uint32_t e = a->n_edges; e > 0;
         e--) {  // backwards: each list begins with its most likely arc
        uint32_t x = a->edges[e - 1].a, y = a->edges[e - 1].b, there = --first[x],
                 back = --first[y];
        a->arcs[there] = (CoordArc){y, back};
        a->arcs[back] = (CoordArc){x, there};
    }
    a->n_arcs = first[a->n];
}

void coord_graph(Coordination *a) {
    a->n_edges = a->n_arcs = 0;
    if (a->params.graph == COORD_NO_GRAPH || a->params.degree == 0 || a->n < 2) return;
    for (uint32_t i = 0; i < a->n; i++) {
        choices_of(a, i);
        if (a->p->rank > 0) sides_of(a, i);
        if (a->params.graph == COORD_STATIC) continue;
        chances_of(a, i);
        if (a->p->rank > 0) moments_of(a, i);
    }
    if (a->params.graph == COORD_STATIC) {
        join_fixed(a);
    } else {
        weigh_pairs(a);
        join_likely(a);
    }
    find_arcs(a);
}

// Max-plus message passing. An agent adds received messages to its gains and sends each neighbour
// the best total it can reach for each of the neighbour's choices. Agents send one after the other,
// as equal agents that send at once choose alike.

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
