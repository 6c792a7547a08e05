// Peer: one oneDNN primitive on random data, in the layouts that oneDNN prefers.
#pragma once

#include "base/err.h"
#include "kernel/conv.h"
#include "kernel/gemm.h"

typedef struct Peer Peer;

typedef enum PeerType { PEER_F32, PEER_INT8 } PeerType;  // INT8: u8 inputs and outputs, s8 weights

// Convolutions have a bias and a ReLU as ours do, products have neither. Weights are reordered
// here, not in peer_run. ERR_UNSUPPORTED: oneDNN has no implementation.
MUST_USE Err peer_conv(const ConvShape *s, PeerType type, Peer **out);
MUST_USE Err peer_gemm(const GemmShape *s, PeerType type, Peer **out);
MUST_USE Err peer_run(Peer *p);
const char  *peer_implementation(const Peer *p);
void         peer_free(Peer *p);  // accepts NULL
