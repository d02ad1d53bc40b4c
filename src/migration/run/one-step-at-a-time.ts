/** Has at most one step of a migration under way. */
export interface OneAtATime {
  /** @throws Error while another is under way: two would stage the same users. */
  take<Result>(step: () => Promise<Result>): Promise<Result>
  /** Resolves once nothing is under way. */
  ended(): Promise<void>
}

export function oneAtATime(): OneAtATime {
  let underWay: Promise<unknown> | undefined
  return {
    async take(step) {
      if (underWay !== undefined) throw new Error('a step of the migration is under way')
      const result = step().finally(() => {
        underWay = undefined
      })
      underWay = result
      return result
    },
    async ended() {
      await underWay?.catch(ignore)
    },
  }
}

function ignore(): void {}
