// Venue: the tenants of a mix on a machine, simulated or this one, ready for runs.
#pragma once

#include "cli/choice.h"
#include "node/machine.h"
#include "node/mix.h"
#include "node/run.h"

typedef struct VenueOptions {
    const char *machine;  // to simulate; NULL: this one, live
    const char *mix;
    double      slack;  // QoS by the rule, times what a network takes alone; 0: see venue_open
    const char *store;  // of profiles, live; NULL: in the cache directory
} VenueOptions;

typedef struct VenueLive VenueLive;

typedef struct Venue {
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
    VenueLive      *live;      // NULL: virtual time
} Venue;

// Without a slack, machines of 32 cores and more get the paper's targets, others the rule's with
// MIX_SLACK. The venue stays where it is until venue_close.
MUST_USE Err venue_open(const VenueOptions *o, Arena *a, Venue *out);
void         venue_close(Venue *s);  // accepts a zeroed one

typedef struct VenueRun {
    Choice     choice;
    double     rate;
    uint64_t   seed;
    uint32_t   requests;  // 0: as many as come in VENUE_SECONDS, live; 2000 in virtual time
    double     give_up;   // see NodeRun
    bool       admit;     // likewise
    RecordSink records;
} VenueRun;

enum { VENUE_SECONDS = 5, VENUE_REQUESTS = 2000, VENUE_LEAST = 60 };

// Poisson arrivals at a rate. In virtual time any number of threads may run one venue.
MUST_USE Err venue_run(const Venue *s, const VenueRun *r, Arena *a, NodeRun *run, NodeResult *out);
// Arrivals as given.
MUST_USE Err venue_play(const Venue *s, const NodeRun *run, Arena *a, NodeResult *out);

char *venue_about(const Venue *s, Arena *a);  // networks and their targets, one sentence

// What follows is for venue_live.c.
MUST_USE Err venue_live_open(const VenueOptions *o, Arena *a, Venue *s);
void         venue_live_close(VenueLive *l);
MUST_USE Err venue_live_play(const Venue *s, const NodeRun *run, Arena *a, NodeResult *out);
MUST_USE Err venue_targets(Venue *s, double slack);  // where the mix has none
