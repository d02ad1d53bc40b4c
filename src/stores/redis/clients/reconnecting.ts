import { AsyncResource } from 'node:async_hooks'
import { isReplyError } from '../connection/redis-call.js'
import type { BaseClient, ClientListener, Reconnecting } from './redis-client.js'
import { REFUSED_RETRY_MS, reconnectDelay } from './time-limits.js'

interface ReconnectingClient<C> extends BaseClient, Reconnecting {
  /** @throws Error if the client is not ready. */
  current(): C
}

/**
 * Makes a client that reconnects: replaces each lost client, which does not reconnect, by what `open` returns, in
 * the async context of this call. `connect` replaces the first client, which is never connected.
 */
export function reconnecting<C extends BaseClient>(
  open: (listener: ClientListener) => C,
  listener: ClientListener,
): ReconnectingClient<C> {
  let client = open({})
  let hasStarted = false
  let isClosed = false
  let failures = 0
  let timer: NodeJS.Timeout | undefined
  let lastError: Error | undefined

  const openNext = AsyncResource.bind((): void => {
    const opened = open({
      connected: () => listener.connected?.(),
      ready() {
        failures = 0
        lastError = undefined
        listener.ready?.()
      },
      lost: () => onLost(opened),
    })
    client = opened
    opened.connect().catch(() => {})
  })

  function onLost(lostClient: C): void {
    if (lostClient !== client || isClosed) return
    failures += 1
    lastError = lostClient.lastError() ?? lastError
    listener.lost?.()
    clearTimeout(timer)
    timer = setTimeout(
      openNext,
      isReplyError(lastError) ? REFUSED_RETRY_MS : reconnectDelay(failures),
    )
  }

  function current(): C {
    if (!client.isReady()) throw notConnectedError()
    return client
  }

  return {
    database: client.database,
    current,
    isReady: () => client.isReady(),
    lastError: () => lastError,
    async connect() {
      if (hasStarted || isClosed) return
      hasStarted = true
      openNext()
    },
    reconnect() {
      const stalled = client
      stalled.close()
      onLost(stalled)
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      client.close()
    },
    runScript: (command) =>
      client.isReady() ? client.runScript(command) : Promise.reject(notConnectedError()),
    masters: async () => current().masters(),
    isTlsUnanswered: (error) => client.isTlsUnanswered(error),
  }
}

export const notConnectedError = (): Error => new Error('Connection is closed.')
