/* One app under test in a process of its own: `node serve.js <file>/<app> <settings as JSON>`. */
import { createServer } from 'node:https'

/** Connections outlive the turns of the other apps. */
const KEEP_ALIVE_MS = 60_000

const [file, name] = process.argv[2].split('/')
const settings = JSON.parse(process.argv[3])
const apps = await import(`./apps/${file}.js`)
const app = await apps[name](settings)
const listener = settings.tls ? createServer(settings.tls, app) : app
const server = listener.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }))
server.keepAliveTimeout = KEEP_ALIVE_MS

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send({ cpuMicroseconds: user + system })
})
process.on('disconnect', () => process.exit())
