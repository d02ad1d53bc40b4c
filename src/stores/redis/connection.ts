import type { Cluster, Redis } from 'ioredis'
import { attemptFor, persist, within } from './attempt.js'
import { type Call, evaluate, type Link, openLink } from './link.js'
import { type Client, duplicateClient } from './own-client.js'

/** Runs scripts on a connection of the store's own, each within `timeoutMs`. */
export interface Connection {
  readonly link: Link
  /**
   * Repeats a call whose reply was lost, which must have no further effect.
   *
   * @throws NotConfirmed when there was no reply in time, or the error that Redis sent.
   */
  run(call: Call): Promise<unknown>
  /** The nodes that take writes, as they are now. */
  masters(): Promise<readonly Redis[]>
  close(): void
}

export function openConnection(usersClient: Client, timeoutMs: number): Connection {
  const link = openLink(duplicateClient(usersClient, timeoutMs))
  const { client } = link
  // The sockets of a cluster's client cannot be told not to hold the process open.
  const rest = (): void => client.disconnect()
  if (client.isCluster) usersClient.on('end', rest)

  return {
    link,
    run(call) {
      const attempt = attemptFor(timeoutMs)
      const tryOnce = (): Promise<unknown> => {
        attempt.mayHaveRun = true
        return within(evaluate(link, call, attempt), attempt)
      }
      return link.hold(
        persist(attempt, () => {
          const becomingReady = link.untilReady(attempt)
          return becomingReady === undefined ? tryOnce() : becomingReady.then(tryOnce)
        }),
      )
    },
    masters() {
      const attempt = attemptFor(timeoutMs)
      return link.hold(
        persist(attempt, async () => {
          await link.untilReady(attempt)
          return client.isCluster ? await freshMasters(client as Cluster) : [client as Redis]
        }),
      )
    },
    close() {
      usersClient.off('end', rest)
      link.close()
    },
  }
}

async function freshMasters(cluster: Cluster): Promise<readonly Redis[]> {
  await new Promise<void>((resolve, reject) => {
    cluster.refreshSlotsCache((error) => (error ? reject(error) : resolve()))
  })
  return cluster.nodes('master')
}
