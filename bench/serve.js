/* One app under test in a process of its own: `node serve.js <app> <settings as JSON>`. */
import { createServer } from 'node:https'
import { apps } from './apps/index.js'

/** Connections outlive the turns of the other apps. */
const KEEP_ALIVE_MS = 60_000

const [name, given] = process.argv.slice(2)
const settings = JSON.parse(given)
const app = await apps[name](settings)
const listener = settings.tls ? createServer(settings.tls, app) : app
const server = listener.listen(settings.port ?? 0, '127.0.0.1', () =>
  process.send({ port: server.address().port }),
)
server.keepAliveTimeout = KEEP_ALIVE_MS

process.on('message', () => {
  globalThis.gc?.()
  const { user, system } = process.cpuUsage()
  process.send({ cpuMicroseconds: user + system, heapUsed: process.memoryUsage().heapUsed })
})
process.on('disconnect', () => process.exit())
