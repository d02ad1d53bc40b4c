/*
 * A wire to Postgres in a process of its own: `node wire.js <port> <delay in ms>`. Replies come that much
 * later. Counts how often a client has waited for a reply; asked over IPC, it answers with the count.
 */
import { connect, createServer } from 'node:net'

const [port, delayMs] = process.argv.slice(2).map(Number)
let roundTrips = 0

const listener = createServer({ noDelay: true }, (client) => {
  const server = connect({ port, host: '127.0.0.1', noDelay: true })
  let isAsking = false
  client.on('data', (chunk) => {
    isAsking = true
    server.write(chunk)
  })
  server.on('data', (chunk) => {
    if (isAsking) roundTrips += 1
    isAsking = false
    if (delayMs > 0) setTimeout(() => client.write(chunk), delayMs)
    else client.write(chunk)
  })
  for (const [one, other] of [
    [client, server],
    [server, client],
  ]) {
    one.on('error', () => {})
    one.on('close', () => other.destroy())
  }
})
listener.listen(0, '127.0.0.1', () => process.send({ port: listener.address().port }))

process.on('message', () => process.send({ roundTrips }))
process.on('disconnect', () => process.exit())
