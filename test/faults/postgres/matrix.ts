import { ADAPTERS, type Adapter, PG } from '../../stores/postgres/adapters/libraries.js'
import type { PostgresVersion } from '../../support/postgres/postgres-binary.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../../support/receiver/express-majors.js'

// What the faults are tried on. `npm test` has each adapter on Express 5, pg on Express 4 too, and one
// version of Postgres; `npm run matrix`, which sets POSTGRES_FAULTS=all, has the product: each adapter on
// both majors of Express, directly and through pgbouncer, on both versions of Postgres.

export type Route = 'directly' | 'through pgbouncer'

export interface Cell {
  readonly title: string
  readonly adapter: Adapter
  /** Of Express. */
  readonly major: string
  readonly express: ExpressModule
  readonly route: Route
}

const IS_WHOLE = process.env['POSTGRES_FAULTS'] === 'all'

const [EXPRESS_4, EXPRESS_5] = EXPRESS_MAJORS as [
  (typeof EXPRESS_MAJORS)[number],
  (typeof EXPRESS_MAJORS)[number],
]

export const VERSIONS: readonly PostgresVersion[] = IS_WHOLE ? [15, 18] : [15]

/** `onlyPg`: of `npm test`, where another adapter would behave as pg does. */
export function cellsOf(routes: readonly Route[], { onlyPg = false } = {}): readonly Cell[] {
  return (IS_WHOLE ? (['directly', 'through pgbouncer'] as const) : routes).flatMap((route) =>
    ADAPTERS.flatMap((adapter) => {
      const hasBoth = IS_WHOLE || (adapter === PG && route === 'directly' && !onlyPg)
      if (onlyPg && !IS_WHOLE && adapter !== PG) return []
      const majors = hasBoth ? [EXPRESS_5, EXPRESS_4] : [EXPRESS_5]
      return majors.map(({ major, express }) => ({
        title: `${adapter.name}, ${major}, ${route}`,
        adapter,
        major,
        express,
        route,
      }))
    }),
  )
}
