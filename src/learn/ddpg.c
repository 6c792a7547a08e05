#include "learn/ddpg.h"

#include <math.h>

#include "base/check.h"
#include "base/fpu.h"
#include "learn/adam.h"
#include "learn/ddpg_int.h"

DdpgOptions ddpg_usual(Actor actor, Critic critic) {
    return (DdpgOptions){.actor = actor,
                         .critic = critic,
                         .batch = 64,
                         .items = 64,
                         .parts = 4,
                         .fixed = true,
                         .twin = true,
                         .actor_every = 2,
                         .actor_rate = 1e-4f,
                         .critic_rate = 1e-3f,
                         .clip = 1,
                         .tau = 0.005f,
                         .huber = 1,
                         .smooth = 0.1f,
                         .smooth_most = 0.3f};
}

static float *take(Block *b, size_t n) {
    float *at = b->at;
    CHECK(n <= b->n);
    *b = (Block){at + n, b->n - n};
    return at;
}

static void net_init(DdpgNet *net, Block *from, size_t n) {
    net->w = (Block){take(from, n), n};
    net->target = (Block){take(from, n), n};
    net->m = (Block){take(from, n), n};
    net->v = (Block){take(from, n), n};
    net->count = take(from, 1);
}

static void nets_init(Ddpg *d, Arena *a) {
    size_t actor = actor_params(d->o.actor), critic = critic_params(d->o.critic);
    d->n_nets = d->o.twin ? 3 : 2;
    d->state = block_new(a, 4 * (actor + (d->n_nets - 1) * critic) + d->n_nets + 1);
    d->gradient = block_new(a, actor > critic ? actor : critic);
    Block left = d->state;
    for (uint32_t i = 0; i < d->n_nets; i++) {
        DdpgNet *net = &d->nets[i];
        Rng      rng = rng_split(&d->rng);
        net_init(net, &left, i == DDPG_ACTOR ? actor : critic);
        if (i == DDPG_ACTOR)
            actor_init(d->o.actor, net->w.at, &rng);
        else
            critic_init(d->o.critic, net->w.at, &rng);
        block_copy(net->target, net->w);
    }
    d->value_size = take(&left, 1);
}

Ddpg *ddpg_create(Arena *a, DdpgOptions o, uint64_t seed) {
    Ddpg *d = arena_new(a, Ddpg, 1);
    CHECK(o.batch > 0 && o.items > 0 && o.parts > 0 && o.parts <= o.batch);
    CHECK(o.critic.features == o.actor.trunk.in && o.critic.actions == o.actor.actions);
    d->o = o;
    d->rng = (Rng){seed};
    nets_init(d, a);
    d->parts = arena_new(a, DdpgPart, o.parts);
    for (uint32_t i = 0; i < o.parts; i++) ddpg_part_init(&d->parts[i], &o, d, a);
    d->errors = block_new(a, o.batch).at;
    return d;
}

static void critic_parts(void *ctx, uint32_t index, uint32_t count) {
    Ddpg  *d = ctx;
    MatWay was = mat_way(d->o.fixed ? MAT_FIXED : MAT_BLAS);
    for (uint32_t i = index; i < d->o.parts; i += count) {
        ddpg_part_pack(d, i);
        ddpg_part_critic(d, i);
    }
    mat_way(was);
}

static void actor_parts(void *ctx, uint32_t index, uint32_t count) {
    Ddpg  *d = ctx;
    MatWay was = mat_way(d->o.fixed ? MAT_FIXED : MAT_BLAS);
    for (uint32_t i = index; i < d->o.parts; i += count) {
        if (!d->by_value) ddpg_part_pack(d, i);
        ddpg_part_actor(d, i);
    }
    mat_way(was);
}

static void run_parts(Ddpg *d, Team *team, TeamFn *fn) {
    if (team != NULL && d->o.fixed)
        team_run(team, fn, d);
    else
        fn(d, 0, 1);
}

// Sums the parts' gradients in order, and takes a step against them; their norm.
static double net_step(Ddpg *d, uint32_t which, float rate) {
    DdpgNet    *net = &d->nets[which];
    Block       g = block_part(d->gradient, 0, net->w.n);
    AdamOptions adam = adam_usual(rate);
    adam.decay = d->o.decay;
    block_copy(g, d->parts[0].gradient[which]);
    for (uint32_t i = 1; i < d->o.parts; i++) block_add(g, d->parts[i].gradient[which]);
    double norm = block_clip(g, (double)d->o.clip);
    if (!isfinite(norm)) return norm;
    *net->count += 1;
    adam_step(&adam, (uint64_t)*net->count, net->w, g, net->m, net->v);
    return norm;
}

static void follow(Ddpg *d, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) block_blend(d->nets[i].target, d->nets[i].w, d->o.tau);
}

static void begin(Ddpg *d, const DdpgStep *steps, uint32_t n, bool value, bool teacher) {
    CHECK(n > 0 && n <= d->o.batch);
    d->steps = steps;
    d->n = n;
    d->by_value = value;
    d->by_teacher = teacher;
}

static void train_critics(Ddpg *d, Team *team, DdpgReport *out) {
    double size = 0;
    run_parts(d, team, critic_parts);
    for (uint32_t i = 0; i < d->o.parts; i++) {
        out->critic_loss += d->parts[i].critic_loss / d->n;
        out->value += d->parts[i].value / d->n;
        size += d->parts[i].value_size / d->n;
    }
    *d->value_size =
        *d->value_size > 0 ? 0.99f * *d->value_size + 0.01f * (float)size : (float)size;
    for (uint32_t i = DDPG_CRITIC; i < d->n_nets; i++) {
        double norm = net_step(d, i, d->o.critic_rate);
        if (!(norm <= out->critic_norm)) out->critic_norm = norm;  // also what is not a number
    }
}

static void train_actor(Ddpg *d, Team *team, DdpgReport *out) {
    run_parts(d, team, actor_parts);
    for (uint32_t i = 0; i < d->o.parts; i++) {
        out->actor_loss += d->parts[i].actor_loss / d->n;
        out->imitate_loss += d->parts[i].imitate_loss / d->n;
    }
    out->actor_norm = net_step(d, DDPG_ACTOR, d->o.actor_rate);
}

void ddpg_train(Ddpg *d, Team *team, const DdpgStep *steps, uint32_t n, DdpgReport *out) {
    FpuState was = fpu_flush_denormals();
    *out = (DdpgReport){0};
    begin(d, steps, n, true, d->o.imitate > 0);
    train_critics(d, team, out);
    uint64_t count = (uint64_t)*d->nets[DDPG_CRITIC].count, every = d->o.actor_every;
    if (every > 0 && count > d->o.actor_from && count % every == 0) train_actor(d, team, out);
    follow(d, 0, d->n_nets);
    fpu_restore(was);
}

void ddpg_imitate(Ddpg *d, Team *team, const DdpgStep *steps, uint32_t n, DdpgReport *out) {
    FpuState was = fpu_flush_denormals();
    *out = (DdpgReport){0};
    begin(d, steps, n, false, true);
    train_actor(d, team, out);
    follow(d, DDPG_ACTOR, DDPG_ACTOR + 1);
    fpu_restore(was);
}

const float *ddpg_errors(const Ddpg *d) { return d->errors; }
const float *ddpg_actor(const Ddpg *d) { return d->nets[DDPG_ACTOR].w.at; }
DdpgOptions *ddpg_options(Ddpg *d) { return &d->o; }
Block        ddpg_state(Ddpg *d) { return d->state; }

void ddpg_set_actor(Ddpg *d, Block w) {
    block_copy(d->nets[DDPG_ACTOR].w, w);
    block_copy(d->nets[DDPG_ACTOR].target, w);
}
