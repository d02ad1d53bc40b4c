/** Functions of TypeORM's managers and repositories that make entities, which are data. */
const MAKES_ENTITIES = new Set<PropertyKey>(['create', 'merge'])

const TAKES_LISTENERS_OFF = new Set<PropertyKey>(['off', 'removeListener'])

/** Whether what the call returns has nothing to do with the transaction. */
export function leadsElsewhere(owner: unknown, name: PropertyKey): boolean {
  // Of TypeORM: it has a connection of its own, which its user must give back.
  if (name === 'createQueryRunner') return true
  return MAKES_ENTITIES.has(name) && has(owner, 'createQueryBuilder')
}

/** Whether the call only takes a listener off, which must be possible also when the transaction has ended. */
export function takesListenerOff(owner: unknown, name: PropertyKey): boolean {
  return TAKES_LISTENERS_OFF.has(name) && has(owner, 'emit')
}

const has = (owner: unknown, name: string): boolean =>
  typeof (Object(owner) as Record<string, unknown>)[name] === 'function'
