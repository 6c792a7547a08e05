// What the tests share: a client of the server under test, calls as promises, .npy files, checks.
'use strict';
const assert = require('assert');
const fs = require('fs');
const http = require('http');
const path = require('path');
const { execFileSync } = require('child_process');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const { GRPC, HTTP, DIR, COTENANT } = process.env;
const options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };
const load = (file) => grpc.loadPackageDefinition(loader.loadSync(path.join(__dirname, file), options));
const channel = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };
const inference = load('inference.proto').inference;
const connect = (address) =>
    new inference.GRPCInferenceService(address, grpc.credentials.createInsecure(), channel);
const client = connect(GRPC);
const health = new (load('health.proto').grpc.health.v1.Health)(GRPC, grpc.credentials.createInsecure());

// One call; how = {deadline: ms, metadata: {}, on: (call) => ...}
function call(stub, method, request, how = {}) {
    return new Promise((resolve, reject) => {
        const metadata = new grpc.Metadata();
        for (const [key, value] of Object.entries(how.metadata || {})) metadata.set(key, value);
        const set = how.deadline === undefined ? {} : { deadline: Date.now() + how.deadline };
        const c = stub[method](request, metadata, set, (e, answer) => (e ? reject(e) : resolve(answer)));
        if (how.on) how.on(c);
    });
}
const ask = (method, request = {}, how) => call(client, method, request, how);

async function fails(code, words, promise) {
    let answer;
    try {
        answer = await promise;
    } catch (e) {
        assert.strictEqual(e.code, code, `${e.code} ${e.details}, not ${code}`);
        assert.ok(words.test(e.details), `'${e.details}' lacks ${words}`);
        return e;
    }
    throw new Error(`answered ${JSON.stringify(answer).slice(0, 200)}, not ${code} ${words}`);
}

function rest(method, where, body) {
    return new Promise((resolve, reject) => {
        const [host, port] = HTTP.split(':');
        const r = http.request({ host, port, method, path: where }, (answer) => {
            const parts = [];
            answer.on('data', (d) => parts.push(d));
            answer.on('end', () => resolve({ status: answer.statusCode, body: Buffer.concat(parts) }));
        });
        r.on('error', reject);
        r.end(body);
    });
}
const restJson = async (where) => JSON.parse((await rest('GET', where)).body);

function npyWrite(file, type, shape, bytes) {
    const list = shape.join(', ') + (shape.length === 1 ? ',' : '');
    let head = `{'descr': '${type}', 'fortran_order': False, 'shape': (${list}), }`;
    head += ' '.repeat((64 - ((10 + head.length + 1) % 64)) % 64) + '\n';
    const front = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, head.length & 255, head.length >> 8]);
    fs.writeFileSync(file, Buffer.concat([front, Buffer.from(head, 'latin1'), bytes]));
}
const npyBytes = (file) => {
    const all = fs.readFileSync(file);
    return all.subarray(10 + all.readUInt16LE(8));
};

// What `cotenant run` computes: bytes by name of output.
function run(model, inputs, outputs) {
    const dir = fs.mkdtempSync(path.join(DIR, 'run-'));
    const args = ['run', model, '--output', dir];
    for (const [name, t] of Object.entries(inputs)) {
        npyWrite(path.join(dir, `${name}.in.npy`), t.type, t.shape, t.bytes);
        args.push('--input', `${name}=${path.join(dir, `${name}.in.npy`)}`);
    }
    execFileSync(COTENANT, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    return Object.fromEntries(outputs.map((name) => [name, npyBytes(path.join(dir, `${name}.npy`))]));
}

const floats = (numbers) => Buffer.from(Float32Array.from(numbers).buffer);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what, test) {
    for (let i = 0; i < 500; i++) {
        if (await test()) return;
        await pause(20);
    }
    throw new Error(`never: ${what}`);
}

async function main(tests) {
    for (const [name, test] of Object.entries(tests)) {
        await test();
        console.log(`ok  ${name}`);
    }
    client.close();
    health.close();
}
const runAll = (tests) =>
    main(tests).catch((e) => {
        console.error(e);
        process.exit(1);
    });

module.exports = { assert, grpc, connect, client, health, call, ask, fails, rest, restJson, run, floats, pause, until, runAll };
