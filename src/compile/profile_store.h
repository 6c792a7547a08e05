// ProfileStore: profiles of layers, kept on disk between runs. Losing it costs time, never a
// compile.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "compile/layer_profile.h"
#include "kernel/isa.h"

struct sqlite3;

// One thread uses it at a time; any number of processes and threads may each open their own.
typedef struct ProfileStore {
    struct sqlite3 *db;  // NULL: it is empty and keeps nothing
    char            path[4096];
    char            machine[512], kernels[64];  // what profiles are kept for
    char            why[512];                   // the last trouble; "" when there was none
    bool            read_only;
    bool            rebuilt;  // what was there was damaged, and stands aside as PATH.bad
    uint64_t        inode;
} ProfileStore;

// path NULL: in the user's cache directory. Never fails: a store that cannot be used is an empty
// one.
void profile_store_open(ProfileStore *s, const char *path, const Cpu *cpu, const Isa *isa);
void profile_store_close(ProfileStore *s);

// layer names kind, shape and whatever else its time depends on.
bool profile_store_get(ProfileStore *s, const char *layer, Arena *a, LayerProfile *out);
bool profile_store_put(ProfileStore *s, const char *layer,
                       const LayerProfile *p);  // replaces; false: not kept, see why
