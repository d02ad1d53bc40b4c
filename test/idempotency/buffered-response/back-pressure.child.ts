import { Readable } from 'node:stream'
import express from 'express'
import { memoryStore } from 'express-service-auth'
import { issuer } from '../../support/issuer/issuer.js'
import { openOrders } from '../../support/receiver/order-receiver.js'

/** A receiver that pipes 48 MiB, as a process of its own, so that its memory can be measured. */
const MIB = 1024 * 1024
const READS_PER_REPORT = 8

const receiver = await openOrders({
  express,
  store: memoryStore(),
  handler(_request, response) {
    let sent = 0
    let reads = 0
    const chunk = Buffer.alloc(MIB / 4, 'x')
    const source = new Readable({
      highWaterMark: MIB / 4,
      read() {
        sent += chunk.length
        this.push(sent > 48 * MIB ? null : Buffer.from(chunk))
        reads += 1
        if (reads % READS_PER_REPORT !== 0) return
        // Held, and not only waiting to be collected: what one collection has found, Node frees beside
        // the program, and the next one waits for that.
        globalThis.gc?.()
        globalThis.gc?.()
        process.send?.({ sent, held: process.memoryUsage().arrayBuffers })
      },
    })
    source.pipe(response)
  },
})
const token = issuer.token()
process.send?.({ port: receiver.port, token })
process.once('disconnect', () => process.exit())
