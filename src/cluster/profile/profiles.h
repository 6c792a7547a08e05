// Profiles: the classes of jobs that a cluster runs, from our own tables and from public ones.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "cluster/profile/alloc_levels.h"
#include "contract/cluster_profile.h"

typedef struct ProfileFile {  // data/profiles, as built in
    const char          *name;
    const unsigned char *bytes;
    size_t               len;
} ProfileFile;

extern const ProfileFile profile_files[];  // ends with an entry of zeros

typedef struct ProfileOptions {  // zeroed: what most want
    const char *set;             // of Synergy's tables; NULL: models
    const char *gpu_type;        // of Gavel's pairs; NULL: v100
    bool fold;  // what profile_known finds goes to that class, Gavel's on average; the rest nowhere
} ProfileOptions;

// No classes yet; Synergy's share of 3 cores and 62.5 GB for each GPU.
MUST_USE Err profile_empty(Arena *a, ClusterProfiles *out);

// A file of our own format, or the name of one that is part of the program; NULL: default.
MUST_USE Err profile_load(const char *what, Arena *a, ClusterProfiles *out);

// Classes of a file, added or in the place of what there is under their names. The file is told by
// its header: our own, Synergy's two, Gavel's two and its JSON, Chronus' JSON. *p is from above.
MUST_USE Err profile_add(ClusterProfiles *p, const char *path, const ProfileOptions *o, Arena *a);
MUST_USE Err profile_add_text(ClusterProfiles *p, const char *name, const char *text, size_t len,
                              const ProfileOptions *o, Arena *a);

// The default share becomes this one: speeds are 1 there, and ladders are built anew.
MUST_USE Err profile_settle(ClusterProfiles *p, double share_cores, double share_gb,
                            const AllocLevelParams *rule);

// By name, without regard to case and to what is neither letter nor digit; PROFILE_NONE: none.
uint32_t profile_find(const ClusterProfiles *p, const char *name);
uint32_t profile_find_alias(const ClusterProfiles *p, const char *name);
uint32_t profile_known(const ClusterProfiles *p, const char *name);  // either, also without "(...)"
uint32_t profile_type(const ClusterProfiles *p, const char *name);

// Speed with another class on its GPU, over those that fit, each by its weight; 0: none fits.
double profile_company(const ClusterProfiles *p, uint32_t class_);
