import type { Connection } from './network.js'
import type { Operator } from './operator.js'
import type { Receiver } from './receiver.js'
import type { Stage } from './stage.js'
import { CALM_AT_MS, type Happening, LONGEST_DELAY_MS } from './story.js'

/** Whom it happens to. */
interface Parties {
  readonly stage: Stage
  readonly receivers: readonly Receiver[]
  readonly operator: Operator
}

/** Lets it happen, to the sender of a message if it happens after one. Returns what the time line says of it. */
export function strike(
  { stage, receivers, operator }: Parties,
  { what, which, ms: drawnMs, drops }: Happening,
  sender?: Receiver,
): string | undefined {
  const { redis, server, network, issuer, simulation } = stage
  const receiver = sender ?? (receivers[which % receivers.length] as Receiver)
  const { name, machine } = receiver
  // All faults end at the same time. A later one is part of the story's end, and lasts as long as that says.
  const ms = simulation.now < CALM_AT_MS ? Math.min(drawnMs, CALM_AT_MS - simulation.now) : drawnMs
  const store = server.machine.name
  const disturb = (who: string, forMs = 0): void => void stage.disturb(what, who, forMs)
  const startAgain = (): void =>
    void simulation.after(ms, redis.machine, () => {
      if (!receiver.isListening && simulation.now < CALM_AT_MS) receiver.start()
    })
  const connections = [...network.connections]
  const toStore = connections.filter(
    ({ ends }) => ends.client?.machine === machine && ends.server?.machine === server.machine,
  )
  const calls = connections.filter(({ ends }) => ends.server?.machine === machine)
  const aCall: Connection | undefined = calls[which % Math.max(1, calls.length)]
  const senders = drops.join(' and ') || 'nobody'
  switch (what) {
    case 'settle as done':
    case 'settle as free': {
      const { storedAs } = stage
      const recordName = [...storedAs.keys()][which % Math.max(1, storedAs.size)]
      if (recordName !== undefined)
        operator.settle(recordName, what === 'settle as done' ? 'finished' : 'freed')
      return undefined
    }
    case 'deny':
    case 'allow':
      operator.deny(which === 7 ? 'reporting' : 'billing', what)
      return undefined
    case 'add key':
    case 'remove key': {
      const isAdded = what === 'add key'
      const kid = isAdded ? issuer.addKey() : issuer.removeKey()
      if (kid === undefined) return undefined
      stage.history.rotations.push({ kid, what: isAdded ? 'add' : 'remove', at: simulation.now })
      return `the issuer ${isAdded ? 'adds' : 'removes'} key ${kid}`
    }
    case 'kill receiver': {
      if (!machine.isAlive) return undefined
      disturb(name, ms)
      receiver.kill()
      startAgain()
      if (which % 3 !== 0) {
        network.ended(machine)
        return `${name} is killed, for ${ms} ms`
      }
      // Without power, not even what its kernel has taken is sent.
      for (const connection of toStore) connection.silent.add('client')
      return `${name} loses its power, for ${ms} ms`
    }
    case 'stop receiver':
      if (!receiver.isListening) return undefined
      disturb(name, ms)
      receiver.stop()
      startAgain()
      return `${name} closes, for ${ms} ms`
    case 'freeze receiver':
      disturb(name, ms)
      machine.freeze(ms)
      return `${name} freezes for ${ms} ms`
    case 'jump receiver clock': {
      const byMs = which % 2 === 0 ? drawnMs : -drawnMs
      disturb('-')
      machine.jump(byMs)
      return `the clock of ${name} jumps by ${byMs} ms`
    }
    case 'cut link to Redis':
      disturb(name)
      for (const connection of toStore) connection.cut(drops)
      return `${name} loses its connections to ${store}, with what ${senders} sent`
    case 'hold link to Redis': {
      const lateMs = drawnMs % LONGEST_DELAY_MS
      disturb(name, LONGEST_DELAY_MS)
      for (const connection of toStore) {
        connection.hold(lateMs)
        connection.cut(['server'])
      }
      network.separate(machine, server.machine, which * 50)
      return `${name} loses its connections to ${store}; what it sent arrives ${lateMs} ms later`
    }
    case 'silence link to Redis':
      disturb(name, Number.POSITIVE_INFINITY)
      for (const { silent } of toStore) for (const side of drops) silent.add(side)
      return `the connections of ${name} to ${store} carry nothing from ${senders} any more`
    case 'separate receiver from Redis':
      disturb(name, ms)
      network.separate(machine, server.machine, ms)
      return `${name} is separated from ${store} for ${ms} ms`
    case 'cut call':
      aCall?.cut(drops)
      return `a call to ${name} is cut, with what ${senders} sent`
    case 'silence call':
      for (const side of drops) aCall?.silent.add(side)
      return `a call to ${name} carries nothing from ${senders} any more`
    case 'freeze Redis':
      disturb('', ms)
      server.machine.freeze(ms)
      return `${store} freezes for ${ms} ms`
    case 'restart Redis':
      disturb('', ms)
      server.restart(ms, 0)
      return `${store} restarts, for ${ms} ms`
    case 'restart Redis without its last writes':
      disturb('', ms)
      redis.restart(ms, 1000)
      return `Redis restarts without its last writes, for ${ms} ms`
    case 'fail over':
      if (stage.story.redis.replicas === 0) return undefined
      disturb('', ms)
      redis.failOver(ms)
      return `Redis fails over, for ${ms} ms`
    case 'stall replicas':
      disturb('', ms)
      redis.stallReplicas(ms)
      return `the replicas get nothing for ${ms} ms`
    case 'flush':
      redis.flush()
      return 'Redis is flushed'
    case 'fill Redis':
      disturb('', ms)
      redis.keys.isFull = true
      simulation.after(ms, redis.machine, () => {
        redis.keys.isFull = false
      })
      return `Redis is full for ${ms} ms`
    case 'end a backend':
      disturb('')
      stage.postgres?.endBackend(which)
      return 'an operator ends a backend'
    case 'stop issuer':
      // A receiver that has failed waits about as long as it has failed, then tries again.
      disturb('', 2 * ms)
      issuer.isListening = false
      simulation.after(ms, issuer.machine, () => {
        issuer.isListening = true
      })
      return `the issuer is down for ${ms} ms`
    case 'jump Redis clock': {
      const byMs = which % 2 === 0 ? drawnMs : -3 * drawnMs
      disturb('', ms)
      server.machine.jump(byMs)
      return `the clock of ${store} jumps by ${byMs} ms`
    }
  }
}
