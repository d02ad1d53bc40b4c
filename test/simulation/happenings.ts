import type { Operator } from './operator.js'
import { COUPLED_FAULTS } from './postgres/route.js'
import type { Receiver } from './receiver.js'
import type { Stage } from './stage.js'
import { CALM_AT_MS, FAULTS, type Happening, LONGEST_DELAY_MS } from './story.js'

/** Whom it happens to. */
interface Parties {
  readonly stage: Stage
  readonly receivers: readonly Receiver[]
  readonly operator: Operator
}

/** Lets it happen, to the sender of a message if it happens after one. Returns what the time line says of it. */
export function strike(
  parties: Parties,
  happening: Happening,
  sender?: Receiver,
): string | undefined {
  const isFault = ([...FAULTS, ...COUPLED_FAULTS] as string[]).includes(happening.what)
  return isFault ? fault(parties, happening, sender) : act(parties, happening)
}

function act(parties: Parties, { what, which }: Happening): string | undefined {
  const { operator, stage } = parties
  const { issuer, history, storedAs, simulation } = stage
  const recordName = [...storedAs.keys()][which % Math.max(1, storedAs.size)]
  const service = which === 7 ? 'reporting' : 'billing'
  switch (what) {
    case 'settle as done':
    case 'settle as free':
      if (recordName !== undefined)
        operator.settle(recordName, what === 'settle as done' ? 'finished' : 'freed')
      return undefined
    case 'deny':
    case 'allow':
      operator.deny(service, what)
      return undefined
    case 'add key':
    case 'remove key': {
      const kid = what === 'add key' ? issuer.addKey() : issuer.removeKey()
      if (kid === undefined) return undefined
      history.rotations.push({
        kid,
        what: what === 'add key' ? 'add' : 'remove',
        at: simulation.now,
      })
      return `the issuer ${what === 'add key' ? 'adds' : 'removes'} key ${kid}`
    }
    default:
      return undefined
  }
}

function fault(parties: Parties, happening: Happening, sender?: Receiver): string | undefined {
  const { what, which, ms, drops } = happening
  const { stage } = parties
  const { redis, server, network, simulation } = stage
  const receiver = sender ?? parties.receivers[which % parties.receivers.length]
  if (receiver === undefined) return undefined
  const { name, machine } = receiver
  const disturb = (who: string, forMs = 0): void => void stage.disturb(what, who, forMs)
  const startAgain = (): void =>
    void simulation.after(ms, redis.machine, () => {
      if (!receiver.isListening && simulation.now < CALM_AT_MS) receiver.start()
    })
  const linksOf = (side: 'client' | 'server') =>
    [...network.connections].filter(
      ({ ends }) =>
        ends.server?.machine === (side === 'client' ? server.machine : machine) &&
        (side === 'server' || ends.client?.machine === machine),
    )
  switch (what) {
    case 'kill receiver':
      if (!machine.isAlive) return undefined
      disturb(name, ms)
      receiver.kill()
      // Without power, not even what its kernel has taken is sent.
      if (which % 3 === 0)
        for (const connection of linksOf('client')) connection.silent.add('client')
      else network.ended(machine)
      startAgain()
      return `${name} ${which % 3 === 0 ? 'loses its power' : 'is killed'}, for ${ms} ms`
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
    case 'jump receiver clock':
      stage.disturb(what, '-', 0)
      machine.jump(which % 2 === 0 ? ms : -ms)
      return `the clock of ${name} jumps by ${which % 2 === 0 ? ms : -ms} ms`
    case 'cut link to Redis':
      disturb(name)
      for (const connection of linksOf('client')) connection.cut(drops)
      return `${name} loses its connections to ${server.machine.name}, with what ${drops.join(' and ') || 'nobody'} sent`
    case 'hold link to Redis':
      disturb(name, LONGEST_DELAY_MS)
      for (const connection of linksOf('client')) {
        connection.hold(ms % LONGEST_DELAY_MS)
        connection.cut(['server'])
      }
      network.separate(machine, server.machine, which * 50)
      return `${name} loses its connections to ${server.machine.name}; what it sent arrives ${ms % LONGEST_DELAY_MS} ms later`
    case 'silence link to Redis':
      disturb(name, Number.POSITIVE_INFINITY)
      for (const connection of linksOf('client'))
        for (const side of drops) connection.silent.add(side)
      return `the connections of ${name} to ${server.machine.name} carry nothing from ${drops.join(' and ') || 'nobody'} any more`
    case 'separate receiver from Redis':
      disturb(name, ms)
      network.separate(machine, server.machine, ms)
      return `${name} is separated from ${server.machine.name} for ${ms} ms`
    case 'cut call': {
      const links = linksOf('server')
      links[which % Math.max(1, links.length)]?.cut(drops)
      return `a call to ${name} is cut, with what ${drops.join(' and ') || 'nobody'} sent`
    }
    case 'silence call': {
      const links = linksOf('server')
      for (const side of drops) links[which % Math.max(1, links.length)]?.silent.add(side)
      return `a call to ${name} carries nothing from ${drops.join(' and ') || 'nobody'} any more`
    }
    case 'freeze Redis':
      disturb('', ms)
      server.machine.freeze(ms)
      return `${server.machine.name} freezes for ${ms} ms`
    case 'restart Redis':
      disturb('', ms)
      server.restart(ms, 0)
      return `${server.machine.name} restarts, for ${ms} ms`
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
    case 'fill Redis': {
      disturb('', ms)
      redis.keys.isFull = true
      simulation.after(ms, redis.machine, () => {
        redis.keys.isFull = false
      })
      return `Redis is full for ${ms} ms`
    }
    case 'end a backend':
      disturb('')
      stage.postgres?.endBackend(which)
      return 'an operator ends a backend'
    case 'stop issuer': {
      const { issuer } = stage
      // A receiver that has failed waits about as long as it has failed, then tries again.
      disturb('', 2 * ms)
      issuer.isListening = false
      simulation.after(ms, issuer.machine, () => {
        issuer.isListening = true
      })
      return `the issuer is down for ${ms} ms`
    }
    case 'jump Redis clock':
      disturb('', ms)
      server.machine.jump(which % 2 === 0 ? ms : -3 * ms)
      return `the clock of ${server.machine.name} jumps by ${which % 2 === 0 ? ms : -3 * ms} ms`
    default:
      return undefined
  }
}
