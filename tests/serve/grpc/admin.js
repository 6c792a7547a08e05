// What administrators may do, on a server that lets them.
'use strict';
const { assert, grpc, ask, fails, restJson, rest, until, runAll } = require('./client');
const { status } = grpc;

runAll({
    'the index': async () => {
        const { models } = await ask('RepositoryIndex');
        const other = JSON.parse((await rest('POST', '/v2/repository/index')).body);
        assert.deepStrictEqual(models, other);
        assert.deepStrictEqual(models.map((m) => m.name), ['rows']);
    },
    'unload and load': async () => {
        assert.deepStrictEqual(await ask('RepositoryModelUnload', { model_name: 'rows' }), {});
        await until('rows is unloaded', async () =>
            (await ask('RepositoryIndex', { ready: true })).models.length === 0);
        const request = { model_name: 'rows', inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4],
            contents: { fp32_contents: [1, 2, 3, 4] } }] };
        await assert.rejects(ask('ModelInfer', request));
        assert.deepStrictEqual(await ask('RepositoryModelLoad', { model_name: 'rows' }), {});
        await until('rows is ready', async () => (await ask('ModelReady', { name: 'rows' })).ready);
        assert.strictEqual((await ask('ModelInfer', request)).outputs.length, 2);
        assert.ok((await restJson('/v2/models')).models.includes('rows'));
    },
    'what is refused': async () => {
        for (const model_name of ['', '../../etc', 'a;id', '$(id)', 'x'.repeat(10000), 'r\u043ews'])
            await fails(status.INVALID_ARGUMENT, /a name has/, ask('RepositoryModelLoad', { model_name }));
        await fails(status.INVALID_ARGUMENT, /./, ask('RepositoryModelLoad', { model_name: 'nobody' }));
        const parameters = { 'file:1/model.onnx': { bytes_param: Buffer.from('x') } };
        await fails(status.INVALID_ARGUMENT, /own files/, ask('RepositoryModelLoad', { model_name: 'rows', parameters }));
        await fails(status.INVALID_ARGUMENT, /own files/, ask('RepositoryModelLoad',
            { model_name: 'rows', parameters: { config: { string_param: '{}' } } }));
    },
});
