import { MIGRATION_MUTANTS } from './migration/mutants.js'
import { drawMigration, type MigrationStory } from './migration/story.js'
import { MigrationWorld } from './migration/world.js'
import { MUTANTS } from './mutants.js'
import { COUPLED_MUTANTS } from './postgres/mutants.js'
import { drawCoupledStory } from './postgres/story.js'
import type { Kind } from './search.js'
import { drawStory, type Story } from './story.js'
import { World } from './world.js'

/** Receivers with a leased store. */
const leased: Kind<Story> = {
  share: 0.8,
  draw: drawStory,
  begin: (story, esa) => new World(story, esa),
  mutants: MUTANTS,
}

/** Receivers with a coupled store. */
const coupled: Kind<Story> = {
  ...leased,
  share: 0.1,
  draw: drawCoupledStory,
  mutants: COUPLED_MUTANTS,
}

/** A migration of users into the core. */
const migration: Kind<MigrationStory> = {
  share: 0.1,
  draw: drawMigration,
  begin: (story, esa) => new MigrationWorld(story, esa),
  mutants: MIGRATION_MUTANTS,
}

export const KINDS = { leased, coupled, migration } satisfies Record<string, Kind>
