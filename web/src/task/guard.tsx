import { Component, type ComponentChildren } from 'preact'

interface GuardProps {
  readonly fallback: ComponentChildren
  readonly children: ComponentChildren
}

/** What cannot be drawn must not take the page with it. */
export class Guard extends Component<GuardProps, { readonly hasFailed: boolean }> {
  static override getDerivedStateFromError = () => ({ hasFailed: true })

  override render() {
    return this.state.hasFailed ? this.props.fallback : this.props.children
  }
}
