import { once } from 'node:events'
import { entryIn } from '../apps/handlers.js'
import { median } from '../measure.js'
import { spawnServer } from '../processes.js'
import { versionOf } from '../table.js'

const PROCESSES = 20
const GOAL = 2.2

const POLICY = {
  issuer: 'https://core.example.com',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
}

/** What the package adds to the start of a process that imports Express, over what a peer adds. */
export async function startup({ settings, table }) {
  const programs = {
    express: `import 'express'`,
    ours: `
      import 'express'
      import { serviceAuth } from ${JSON.stringify(entryIn(settings.build, '.').href)}
      serviceAuth(${JSON.stringify(POLICY)})`,
    peer: `
      import 'express'
      import { auth } from 'express-oauth2-jwt-bearer'
      auth({ issuerBaseURL: 'https://core.example.com', audience: 'orders' })`,
  }
  const times = { express: [], ours: [], peer: [] }
  for (let count = 0; count < PROCESSES; count += 1) {
    for (const [name, program] of Object.entries(programs)) times[name].push(await timeOf(program))
  }
  const more = (name) => median(times[name]) - median(times.express)
  table.add({
    figure: `import and one policy, cold, ms beyond Express, over ${versionOf('express-oauth2-jwt-bearer')}`,
    ours: more('ours'),
    other: more('peer'),
    ratio: more('ours') / more('peer'),
    goal: GOAL,
    isCost: true,
  })
}

/** Milliseconds of a whole process. */
async function timeOf(program) {
  const began = performance.now()
  const child = spawnServer(['--input-type=module', '--eval', program], {
    cwd: new URL('..', import.meta.url),
    stdio: 'inherit',
  })
  const [status] = await once(child, 'exit')
  if (status !== 0) throw new Error(`a program ended with ${status}`)
  return performance.now() - began
}
