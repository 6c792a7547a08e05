// Store: profiles of layers, kept on disk between runs. Losing it costs time, never a compile.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "compile/profile.h"
#include "kernel/isa.h"

struct sqlite3;

// One thread uses it at a time; any number of processes and threads may each open their own.
typedef struct Store {
    struct sqlite3 *db;  // NULL: it is empty and keeps nothing
    char            path[4096];
    char            machine[512], kernels[64];  // what profiles are kept for
    char            why[512];                   // the last trouble; "" when there was none
    bool            read_only;
    bool            rebuilt;  // what was there was damaged, and stands aside as PATH.bad
    uint64_t        inode;
} Store;

// path NULL: in the user's cache directory. Never fails: a store that cannot be used is an empty
// one.
void store_open(Store *s, const char *path, const Cpu *cpu, const Isa *isa);
void store_close(Store *s);

// layer names kind, shape and whatever else its time depends on.
bool store_get(Store *s, const char *layer, Arena *a, Profile *out);
bool store_put(Store *s, const char *layer,
               const Profile *p);  // replaces; false: not kept, see why
