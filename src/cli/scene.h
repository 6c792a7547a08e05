// Scene: the tenants of a mix on a machine, simulated or this one, ready for runs.
#pragma once

#include "cli/choice.h"
#include "node/machine.h"
#include "node/mix.h"
#include "node/run.h"

typedef struct SceneOptions {
    const char *machine;  // to simulate; NULL: this one, live
    const char *mix;
    double      slack;  // QoS by the rule, times what a network takes alone; 0: see scene_open
    const char *store;  // of profiles, live; NULL: in the cache directory
} SceneOptions;

typedef struct SceneLive SceneLive;

typedef struct Scene {
    const char     *machine;  // for people
    NodeMachineSpec spec;     // that simulates it
    NodeMachine     view;
    Mix             mix;
    NodeModel      *models;   // [mix.n]
    NodeTenant     *tenants;  // [mix.n]
    double          share[MIX_TENANTS];
    NodeSetup       setup;
    double          capacity;  // requests a second if every core worked on its own without pause
    bool            measured;  // the models, on the machine itself
    SceneLive      *live;      // NULL: virtual time
} Scene;

// Without a slack, machines of 32 cores and more get the paper's targets, others the rule's with
// MIX_SLACK. The scene stays where it is until scene_close.
MUST_USE Err scene_open(const SceneOptions *o, Arena *a, Scene *out);
void         scene_close(Scene *s);  // accepts a zeroed one

typedef struct SceneRun {
    Choice     choice;
    double     rate;
    uint64_t   seed;
    uint32_t   requests;  // 0: as many as come in SCENE_SECONDS, live; 2000 in virtual time
    double     give_up;   // see NodeRun
    RecordSink records;
} SceneRun;

enum { SCENE_SECONDS = 5, SCENE_REQUESTS = 2000, SCENE_LEAST = 60 };

// Poisson arrivals at a rate. In virtual time any number of threads may run one scene.
MUST_USE Err scene_run(const Scene *s, const SceneRun *r, Arena *a, NodeRun *run, NodeResult *out);
// Arrivals as given.
MUST_USE Err scene_play(const Scene *s, const NodeRun *run, Arena *a, NodeResult *out);

char *scene_about(const Scene *s, Arena *a);  // networks and their targets, one sentence

// What follows is for scene_live.c.
MUST_USE Err scene_live_open(const SceneOptions *o, Arena *a, Scene *s);
void         scene_live_close(SceneLive *l);
MUST_USE Err scene_live_play(const Scene *s, const NodeRun *run, Arena *a, NodeResult *out);
MUST_USE Err scene_targets(Scene *s, double slack);  // where the mix has none
