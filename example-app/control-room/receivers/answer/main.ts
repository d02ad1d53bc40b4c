import { endWithParent } from '../../end-with-parent.js'
import type { GivenAnswer } from '../stored-answer.js'
import { keptAnswer } from './kept-answer.js'

endWithParent()
process.once('message', async (answer: GivenAnswer) => {
  process.send?.(await keptAnswer(answer))
})
