import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { compileText } from '../support/process/compile.js'
import { API_DOMAIN, API_KEY, CLAIMS } from './claims.js'
import { hangs, hangsUp, type Lie, mints, startLyingCore } from './lying-core.js'

/** Leaves a source behind, which it does not close; the process must end all the same. */
const program = await compileText(`
  import { tokenSource } from 'express-service-auth/client'

  const [, , baseUrl, apiKey, waits] = process.argv
  const never = () => new Promise(() => {})
  const core = { baseUrl, apiKey: apiKey || never }
  const terms = { apiDomain: '${API_DOMAIN}', claims: ${JSON.stringify(CLAIMS)} }
  const ready = tokenSource({ core, ...terms, timeoutMs: waits ? 3000 : 300 }).ready()
  const ended = ready.catch((error) => waits && console.log(error.message))
  if (waits) await ended
  console.log('left')
`)

const UNREACHABLE = 'no service token: core_unreachable, UND_ERR_SOCKET'

it.concurrent.for<[string, Lie, string[], string]>([
  ['obtained', mints(), [API_KEY, 'waits'], 'left\n'],
  ['failed', hangsUp, [API_KEY, 'waits'], `${UNREACHABLE}\nleft\n`],
  ['under way', hangs, [API_KEY], 'left\n'],
  ['waiting for its key', hangs, [''], 'left\n'],
])(
  'a source that is left open does not hold the process open: %s',
  async ([_, lie, args, told], { onTestFinished }) => {
    const core = await startLyingCore(lie, onTestFinished)
    const command = [program, core.url, ...args]
    const run = promisify(execFile)(process.execPath, command, { timeout: 50_000 })
    expect(await run).toMatchObject({ stdout: told, stderr: '' })
  },
)
