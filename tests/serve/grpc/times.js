// Deadlines and cancelled calls.
'use strict';
const { assert, grpc, ask, fails, rest, restJson, floats, until, pause, runAll } = require('./client');
const { status } = grpc;

const shape = [1, 3, 224, 224];
const bytes = floats(new Float32Array(150528));
let name;
const picture = (more = {}) => ({ model_name: 'squeezenet1_1', inputs: [{ name, datatype: 'FP32', shape }],
    raw_input_contents: [bytes], ...more });
const ends = async () => (await restJson('/v2/models/squeezenet1_1/stats')).model_stats[0].cotenant.ends;
const count = async (end) => (await ends())[end] || 0;
const stamp = (grpcTimeout) => ({ metadata: { 'grpc-timeout': grpcTimeout } });

runAll({
    'a model to wait for': async () => {
        name = (await ask('ModelMetadata', { name: 'squeezenet1_1' })).inputs[0].name;
        assert.strictEqual((await ask('ModelInfer', picture(), { deadline: 60000 })).outputs.length, 1);
    },
    'a deadline that has passed': async () => {
        await fails(status.DEADLINE_EXCEEDED, /./, ask('ModelInfer', picture(), { deadline: 1 }));
        await fails(status.DEADLINE_EXCEEDED, /./, ask('ModelInfer', picture(), { deadline: -1000 }));
    },
    'the server says so too, and where the time went': async () => {
        const before = await count('expired');
        const one = { timeout: { int64_param: 1 } };
        await fails(status.DEADLINE_EXCEEDED, /us|ms/, ask('ModelInfer', picture({ parameters: one })));
        await until('it is counted', async () => (await count('expired')) > before);
    },
    'timeouts that are none': async () => {
        for (const t of [{ double_param: -1 }, { bool_param: true }])
            await fails(status.INVALID_ARGUMENT, /timeout/, ask('ModelInfer', picture({ parameters: { timeout: t } })));
        const far = { timeout: { uint64_param: '18446744073709551615' } };
        assert.strictEqual((await ask('ModelInfer', picture({ parameters: far }))).outputs.length, 1);
    },
    'cancelled before, while and after it is computed': async () => {
        const before = await count('cancelled');
        const calls = [];
        const answers = Array.from({ length: 12 }, () => ask('ModelInfer', picture(), { on: (c) => calls.push(c) })
            .then(() => 'answered', (e) => e.code));
        await until('some are there', async () => (await restJson('/v2/models/squeezenet1_1/stats')) !== null);
        await pause(30);
        calls.slice(1).forEach((c) => c.cancel());
        const codes = await Promise.all(answers);
        assert.strictEqual(codes[0], 'answered');
        assert.ok(codes.slice(1).every((c) => c === status.CANCELLED || c === 'answered'), codes);
        assert.ok(codes.includes(status.CANCELLED));
        await until('the server gave them up', async () => (await count('cancelled')) > before);
        await ask('ModelInfer', picture());
        const late = [];
        const answered = ask('ModelInfer', picture(), { on: (c) => late.push(c) });
        await answered;
        late[0].cancel();
        assert.strictEqual((await ask('ModelInfer', picture())).outputs.length, 1);
    },
    'others are served meanwhile, and nothing is left': async () => {
        await until('nothing is on its way', async () => {
            const text = (await rest('GET', '/v2/health/ready')).status;
            return text === 200;
        });
        assert.deepStrictEqual(await ask('ServerReady'), { ready: true });
    },
});
