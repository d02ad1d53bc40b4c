import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { hang, serve, startKeySetServer } from '../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom } from '../support/issuer/signing-keys.js'
import { compileCommand, runChild, startChild, temporaryFile } from './kit.js'

const key = makeSigningKey('d-1')

const policyAt = (jwksUri: string): Promise<string> =>
  temporaryFile(JSON.stringify({ ...POLICY, jwksUri }), 0o644)

describe('the process', () => {
  it('ends by itself, soon after the answer, whose connection is kept alive', async () => {
    const server = await startKeySetServer(serve({ keys: [key.jwk] }, { connection: 'keep-alive' }))
    const argv = ['doctor', '--policy', await policyAt(server.url), '--token-stdin']
    const { child, ended } = await startChild(argv, { stdin: tokenFrom(key) })
    await once(child.stdout, 'data')
    const answeredAt = performance.now()
    const { exitCode, stdout, stderr } = await ended
    expect(performance.now() - answeredAt).toBeLessThan(2000)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('Token accepted\n')
    await server.close()
  })

  it('ends with its exit code, and has a stream for each reader', async () => {
    const ran = await runChild(['check-store', '--json'], { stdin: '' })
    expect(ran.exitCode).toBe(2)
    expect(ran.stdout).toMatch(/^\{"command":"check-store","ok":false,.*\}\n$/)
    expect(ran.stderr).toMatch(/^service-auth: the address of Redis is missing: .*\n$/)
  })

  it('ends with 130 on SIGINT', async () => {
    const server = await startKeySetServer(hang)
    const { child, ended } = await startChild(['doctor', '--policy', await policyAt(server.url)], {
      stdin: '',
    })
    await server.requested(1)
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ exitCode: 130, stdout: '', stderr: '' })
    await server.close()
  })

  it.skipIf(!existsSync('/dev/full'))('ends with 3 when what it writes is lost', async () => {
    const command = `"${process.execPath}" "${await compileCommand()}" --version > /dev/full`
    const shell = spawn('sh', ['-c', command], { stdio: 'inherit' })
    expect(await once(shell, 'close')).toEqual([3, null])
  })

  it('ends with its exit code when nobody reads what it writes', async () => {
    const server = await startKeySetServer(serve({ keys: [] }))
    const { child, ended } = await startChild(['doctor', '--policy', await policyAt(server.url)], {
      stdin: '',
    })
    child.stdout.destroy()
    expect(await ended).toMatchObject({ exitCode: 1, stderr: '' })
    await server.close()
  })
})
